# Everything a contributor or a newcomer runs. `make help` lists the targets. Needs Go and make; nothing is downloaded but
# Go modules and, where a target says npm, the packages that a lock file pins. Works with GNU Make 3.81 (macOS) and later.

# Versions of tools, installed into bin/tools by `make lint`.
GOLANGCI_LINT_VERSION := v2.15.0
WORKFLOWCHECK_VERSION := v0.6.0
GOVULNCHECK_VERSION := v1.9.0
# What `make lint` cross-builds for.
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
# How many kills `make soak` spreads over many runs on PostgreSQL, and which (a seed makes the same ones), how many jobs it kills one by one,
# and how many logins it lets land around the wait.
SOAK_POINTS := 500
SOAK_SEED := 1
SOAK_JOBS := 50
SOAK_LOGINS := 1000
# What `make bench` runs: flags of bin/bench (go run ./bench -h lists them), and how often it asks under bogus callbacks.
BENCH_FLAGS :=
CALLBACKS := yes
BENCH_CALLBACKS := 10x
# Three times what the longest package takes on two cores.
TEST_TIMEOUT := 45m
# The end-to-end tests that look for secrets everywhere: they run on both databases.
CANARIES := NoSecretLeaks|EchoLeakNothing|TestKeysFromThePage|TestKeysInADKReplies|TestADKKeyVariants|TestDeviceCodeThroughAKill|TestPeopleAndTheirLinks|TestServicesClaim
# A minute for 30 kills, and an hour for the rest; 60 kills a minute is what two cores do.
SOAK_TIMEOUT := $(shell echo $$((60 + $(SOAK_POINTS) / 30)))m
INTEROP_TIMEOUT := 15m
PAGES_TIMEOUT := 5m
ADKWEB_TIMEOUT := 10m

TOOLS := $(CURDIR)/bin/tools
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)
WORKFLOWCHECK := $(TOOLS)/workflowcheck-$(WORKFLOWCHECK_VERSION)
GOVULNCHECK := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)
# Everything is compiled the same way, so that each package is compiled once: programs, linters and tests share the
# cache. Programs run without cgo everywhere; only the race detector needs a C compiler.
export GOFLAGS := -trimpath $(filter-out -trimpath,$(GOFLAGS))
export CGO_ENABLED := 0
EXAMPLES := $(patsubst %/go.mod,%,$(wildcard examples/*/go.mod))

# MODEL=gemini/… or MODEL=openai/… plays the demo on that model, with its key from the environment.
MODEL ?=
DEMO_FLAGS := $(if $(MODEL),--model $(MODEL))

# -race where a C compiler is there; with CI=true a missing one is an error. SQLite, a C program that was translated to Go, is left
# out: its memory is not Go's, so the detector sees nothing in it, and with it every statement takes many times as long.
CC_FOUND := $(shell command -v $${CC:-cc} 2>/dev/null || command -v gcc 2>/dev/null || command -v clang 2>/dev/null)
RACE := $(if $(CC_FOUND),-race -gcflags=modernc.org/sqlite/lib=-race=false)
CGO := $(if $(CC_FOUND),1,0)

say = printf '%s  %s\n' "$$(date +%H:%M:%S)" "$(1)"

.DEFAULT_GOAL := help
.PHONY: help build demo test test-main test-postgres test-logins test-devserver test-examples docs lint lint-format lint-tidy lint-go lint-devserver \
	lint-examples lint-workflows cross vuln interop conformance adkweb pages soak bench clean race-possible on-postgres soak-kills

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/devserver, worker, server and starter
	@mkdir -p bin
	@$(call say,bin/devserver: the Temporal server; this takes minutes the first time)
	@cd devserver && go build -o ../bin/devserver .
	@$(call say,bin/worker)
	@go build -o bin/worker ./cmd/worker
	@$(call say,bin/server)
	@go build -o bin/server ./cmd/server
	@$(call say,bin/starter)
	@go build -o bin/starter ./cmd/starter
	@$(call say,built)

demo: build ## tell the whole story: a login that outlives every process (MODEL=gemini/… or openai/… for a real model)
	@if [ -t 0 ]; then bin/starter demo $(DEMO_FLAGS); else bin/starter demo --auto $(DEMO_FLAGS); fi

test: build race-possible test-main test-logins test-devserver test-examples ## run every test but those of `make soak`
	@$(call say,all tests passed)

race-possible:
	@if [ "$(CI)" = true ] && [ -z "$(RACE)" ]; then echo "no C compiler: CI runs the tests with the race detector, install gcc" >&2; exit 1; fi
	@if [ -z "$(RACE)" ]; then echo "no C compiler: tests run without the race detector"; fi

test-main: build race-possible ## run the main module's tests, documentation checks included
	@$(call say,go test $(RACE) ./...)
	@CGO_ENABLED=$(CGO) go test $(RACE) -shuffle=on -timeout $(TEST_TIMEOUT) ./...

test-postgres: build ## run the tests of what is stored, and some of the whole, on a PostgreSQL that this starts (needs its programs)
	@.ci/postgres $(MAKE) --no-print-directory on-postgres

# What TARRY_TEST_DATABASE_URL makes a difference to.
on-postgres:
	@if [ -n "$$TARRY_TEST_DATABASE_URL" ]; then \
		$(call say,go test ./store ./notify ./auth/keys ./server ./e2e with PostgreSQL); \
		go test -count=1 -timeout $(TEST_TIMEOUT) -run '.*/postgres|Postgres' ./store && \
		go test -count=1 -timeout $(TEST_TIMEOUT) ./notify ./auth/keys ./server/accounts ./server/signin && \
		go test -count=1 -timeout $(TEST_TIMEOUT) -run Postgres ./e2e && \
		TARRY_TEST_WORLDS_ON_POSTGRES=yes go test -count=1 -timeout $(TEST_TIMEOUT) -run '$(CANARIES)' ./e2e; \
	fi

test-logins: build ## land a thousand logins before, during and after the wait; without the race detector, which the rest has
	@$(call say,a thousand logins)
	@go test -count=1 -timeout $(TEST_TIMEOUT) -run TestThousandLoginsInOneProcess ./e2e

test-devserver: build ## run the tests of the Temporal dev server
	@$(call say,devserver: go test ./...)
	@cd devserver && TARRY_DEVSERVER_BIN="$(CURDIR)/bin/devserver" go test -timeout $(TEST_TIMEOUT) ./...

test-examples: build race-possible ## run the tests of the examples that are modules of their own
	@for dir in $(EXAMPLES); do \
		$(call say,$$dir: go test $(RACE) ./...); \
		(cd "$$dir" && CGO_ENABLED=$(CGO) go test $(RACE) -timeout $(TEST_TIMEOUT) ./...) || exit 1; \
	done

docs: ## check the documentation alone: tables, named tests, links
	@go test -count=1 ./internal/docscheck

lint: lint-format lint-tidy lint-go lint-devserver lint-examples lint-workflows cross ## check format, rules, determinism and modules; cross-build
	@$(call say,lint is clean)

lint-format: ## check gofmt
	@$(call say,gofmt)
	@bad=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$bad" ]; then echo "not formatted, run gofmt -w:" >&2; echo "$$bad" >&2; exit 1; fi

lint-tidy: ## check that go.mod and go.sum are what go mod tidy writes
	@for dir in . devserver $(EXAMPLES); do \
		$(call say,go mod tidy -diff in $$dir); \
		(cd "$$dir" && go mod tidy -diff) || exit 1; \
	done

lint-go: $(GOLANGCI_LINT) ## run go vet and golangci-lint on the main module
	@$(call say,go vet ./...)
	@go vet ./...
	@go vet -tags faults ./internal/process ./cmd/worker ./cmd/server
	@go vet -tags interop ./interop
	@go vet -tags pages ./pages
	@go vet -tags adkweb ./adkweb
	@$(call say,golangci-lint run ./...)
	@$(GOLANGCI_LINT) run ./...

lint-devserver: $(GOLANGCI_LINT) ## run go vet and golangci-lint on the dev server
	@$(call say,devserver: go vet and golangci-lint run)
	@cd devserver && go vet ./... && $(GOLANGCI_LINT) run ./...

lint-examples: ## run go vet on the examples that are modules of their own
	@for dir in $(EXAMPLES); do \
		$(call say,go vet in $$dir); \
		(cd "$$dir" && go vet ./...) || exit 1; \
	done

lint-workflows: $(WORKFLOWCHECK) ## check that workflow code is deterministic
	@$(call say,workflowcheck ./...)
	@$(WORKFLOWCHECK) -config .workflowcheck.yaml ./...

cross: ## build the main module for every platform, without cgo
	@for platform in $(PLATFORMS); do \
		$(call say,build for $$platform); \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} go build ./... || exit 1; \
	done

$(GOLANGCI_LINT):
	@$(call say,golangci-lint $(GOLANGCI_LINT_VERSION): compiling takes minutes the first time)
	@mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@mv $(TOOLS)/golangci-lint $@

$(WORKFLOWCHECK):
	@$(call say,workflowcheck $(WORKFLOWCHECK_VERSION))
	@mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS) go install go.temporal.io/sdk/contrib/tools/workflowcheck@$(WORKFLOWCHECK_VERSION)
	@mv $(TOOLS)/workflowcheck $@

$(GOVULNCHECK):
	@$(call say,govulncheck $(GOVULNCHECK_VERSION))
	@mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS) go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	@mv $(TOOLS)/govulncheck $@

vuln: $(GOVULNCHECK) ## look for known vulnerabilities (needs vuln.go.dev, or GOVULNDB)
	@.ci/vuln $(GOVULNCHECK) . devserver $(EXAMPLES)

interop: build race-possible ## run the demo's job against an authorization server and an MCP server from npm (needs npm)
	@.ci/npm interop
	@$(call say,interop: go test $(RACE) ./interop)
	@CGO_ENABLED=$(CGO) go test -tags interop $(RACE) -count=1 -v -timeout $(INTEROP_TIMEOUT) ./interop

adkweb: build ## play ADK's web UI, as npm has it, in Chromium; keeps screenshots in adkweb/screenshots (needs npm and Chromium)
	@.ci/npm adkweb
	@$(call say,bin/adkweb: a worker with tools for tests and a server)
	@mkdir -p bin/adkweb
	@go build -tags faults -o bin/adkweb/ ./cmd/worker ./cmd/server
	@ln -sf ../devserver bin/adkweb/devserver
	@go test -tags adkweb -c -o bin/adkweb/play ./adkweb
	@$(call say,adkweb: screenshots go to $(or $(TARRY_SCREENSHOTS),adkweb/screenshots))
	@cd adkweb && ../bin/adkweb/play -test.timeout $(ADKWEB_TIMEOUT)

pages: build ## look at every page in Chromium, on a phone and a desk, by keyboard; keeps screenshots in bin/pages (needs Chromium)
	@$(call say,pages: go test ./pages)
	@go test -tags pages -count=1 -timeout $(PAGES_TIMEOUT) ./pages
	@$(call say,screenshots: bin/pages)

conformance: build ## run the MCP conformance suite against the running service, and kill the worker meanwhile (needs npm)
	@.ci/npm conformance
	@go build -o bin/conformance ./conformance
	@$(call say,conformance: the suite of 2025-11-25 and of 2026-07-28)
	@bin/conformance

soak: build race-possible ## kill processes and PostgreSQL SOAK_POINTS times under many runs, then check everything (SOAK_SEED=… repeats)
	@.ci/postgres $(MAKE) --no-print-directory soak-kills
	@$(call say,killing $(SOAK_JOBS) jobs one by one)
	@TARRY_SOAK=$(SOAK_JOBS) TARRY_SEED=$(SOAK_SEED) TARRY_LOGINS=$(SOAK_LOGINS) CGO_ENABLED=$(CGO) go test $(RACE) -count=1 -v -timeout $(SOAK_TIMEOUT) -run 'SeededKills|LoginsAroundTheWait|ThousandLogins' ./e2e

# Without the race detector, which the jobs have: it makes the processes start slowly.
soak-kills:
	@if [ -z "$$TARRY_TEST_DATABASE_URL" ]; then echo "the soak needs PostgreSQL: install it, or set TARRY_TEST_DATABASE_URL" >&2; exit 1; fi
	@$(call say,$(SOAK_POINTS) kills with seed $(SOAK_SEED))
	@TARRY_SOAK_KILLS=$(SOAK_POINTS) TARRY_SEED=$(SOAK_SEED) go test -count=1 -v -timeout $(SOAK_TIMEOUT) -run '^TestSoakOnPostgres$$' ./e2e

bench: build ## measure the loop beside a bare Temporal workflow, and callbacks under load (CALLBACKS=no leaves those out)
	@go build -o bin/bench ./bench
	@bin/bench $(BENCH_FLAGS)
	@if [ "$(CALLBACKS)" != no ]; then \
		$(call say,what a person notices of bogus callbacks); \
		go test -count=1 -run '^$$' -bench UnderBogusCallbacks -benchtime $(BENCH_CALLBACKS) -timeout $(TEST_TIMEOUT) ./e2e; \
	fi

clean: ## remove what was built, tools included
	rm -rf bin
