-- +goose Up
-- Endpoints that servers have named, seen last. Changes write deliveries for them. digest: SHA-256 of the URL, in hex.
CREATE TABLE webhooks (
    name   TEXT PRIMARY KEY,
    apps   TEXT NOT NULL, -- JSON list
    types  TEXT NOT NULL, -- JSON list
    digest TEXT NOT NULL,
    gone   BIGINT NOT NULL, -- when the endpoint said so
    paused BIGINT NOT NULL, -- until when it wants to be left alone
    seen   BIGINT NOT NULL
);

CREATE TABLE deliveries (
    seq      {{serial}},
    id       TEXT NOT NULL UNIQUE, -- the webhook-id
    endpoint TEXT NOT NULL,
    type     TEXT NOT NULL,
    request  TEXT NOT NULL,
    status   TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    code     BIGINT NOT NULL, -- of the last answer
    reason   TEXT NOT NULL,
    due      BIGINT NOT NULL,
    created  BIGINT NOT NULL,
    ended    BIGINT NOT NULL
);
CREATE INDEX deliveries_due ON deliveries (endpoint, status, due);
CREATE INDEX deliveries_ended ON deliveries (ended);

-- +goose Down
DROP TABLE deliveries;
DROP TABLE webhooks;
