# syntax=docker/dockerfile:1
# One build for every image: --target worker, server, starter or proxy. Programs are static, images have no shell, and nothing
# runs as root or writes outside of its volumes. Tags are pinned; to pin content too, add @sha256:… to the two FROM lines.
ARG GO_VERSION=1.26.8
ARG CADDY_VERSION=2.11.4

FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-alpine AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH
ENV CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    GOOS=$TARGETOS GOARCH=$TARGETARCH go build -ldflags=-s -o /out/ ./cmd/worker ./cmd/server ./cmd/starter
# A new volume takes its owner from the folder that it covers.
RUN mkdir -p /folders/var/lib/tarry /folders/var/lib/demo /folders/etc/tarry/ca /folders/data /folders/config

FROM caddy:${CADDY_VERSION}-alpine AS caddy
# The copy has no file capability: with one, and with every capability dropped, the kernel refuses to run it.
RUN cp /usr/bin/caddy /caddy

FROM scratch AS base
ARG VERSION=devel
LABEL org.opencontainers.image.title=tarry org.opencontainers.image.version=$VERSION org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build --chown=65532:65532 --chmod=0700 /folders/var/lib/tarry /var/lib/tarry
COPY --from=build --chown=65532:65532 --chmod=0700 /folders/var/lib/demo /var/lib/demo
COPY --from=build --chown=65532:65532 --chmod=0755 /folders/etc/tarry/ca /etc/tarry/ca
ENV TARRY_DATA_DIR=/var/lib/tarry
WORKDIR /var/lib/tarry
USER 65532:65532

FROM base AS worker
COPY --from=build /out/worker /usr/local/bin/worker
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/usr/local/bin/worker", "health"]
ENTRYPOINT ["/usr/local/bin/worker"]

FROM base AS server
COPY --from=build /out/server /usr/local/bin/server
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/usr/local/bin/server", "health"]
ENTRYPOINT ["/usr/local/bin/server"]

FROM base AS starter
COPY --from=build /out/starter /usr/local/bin/starter
ENTRYPOINT ["/usr/local/bin/starter"]

FROM starter AS proxy
COPY --from=caddy /caddy /usr/local/bin/caddy
COPY --from=build --chown=65532:65532 --chmod=0700 /folders/data /data
COPY --from=build --chown=65532:65532 --chmod=0700 /folders/config /config
COPY deploy/Caddyfile /etc/caddy/Caddyfile
ENV XDG_DATA_HOME=/data XDG_CONFIG_HOME=/config
WORKDIR /data
EXPOSE 8080 8443
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/usr/local/bin/starter", "health", "http://127.0.0.1:8079/"]
ENTRYPOINT ["/usr/local/bin/caddy"]
CMD ["run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
