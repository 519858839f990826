-- +goose Up
-- Times are microseconds since 1970, 0 for none. BYTEA columns hold ciphertext unless said otherwise.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value BYTEA NOT NULL
);

CREATE TABLE definitions (
    hash    TEXT PRIMARY KEY,
    app     TEXT NOT NULL,
    body    TEXT NOT NULL,
    created BIGINT NOT NULL
);

CREATE TABLE apps (
    app       TEXT PRIMARY KEY,
    hash      TEXT NOT NULL,
    published BIGINT NOT NULL
);

CREATE TABLE sessions (
    seq         {{serial}},
    workflow_id TEXT NOT NULL UNIQUE,
    app         TEXT NOT NULL,
    usr         TEXT NOT NULL,
    id          TEXT NOT NULL,
    definition  TEXT NOT NULL,
    mode        TEXT NOT NULL,
    initial     TEXT NOT NULL,
    status      TEXT NOT NULL,
    invocation  TEXT NOT NULL,
    run         TEXT NOT NULL,
    tips        TEXT NOT NULL, -- JSON list: events without a child in the current run
    tips_run    TEXT NOT NULL, -- the run that moved them last
    closed      BIGINT NOT NULL,
    created     BIGINT NOT NULL,
    updated     BIGINT NOT NULL,
    UNIQUE (app, usr, id)
);

-- Runs that have appended: one that was seen before and is not current has been replaced by a reset.
CREATE TABLE runs (
    workflow_id TEXT NOT NULL,
    run         TEXT NOT NULL,
    PRIMARY KEY (workflow_id, run)
);

CREATE TABLE events (
    seq         {{serial}},
    id          TEXT NOT NULL UNIQUE,
    workflow_id TEXT NOT NULL,
    invocation  TEXT NOT NULL,
    kind        TEXT NOT NULL,
    author      TEXT NOT NULL,
    parents     TEXT NOT NULL, -- JSON list
    body        TEXT NOT NULL,
    created     BIGINT NOT NULL
);
CREATE INDEX events_session ON events (workflow_id, seq);

CREATE TABLE inbox (
    seq         {{serial}},
    id          TEXT NOT NULL UNIQUE,
    workflow_id TEXT NOT NULL,
    invocation  TEXT NOT NULL,
    body        TEXT NOT NULL,
    event       TEXT NOT NULL, -- the event it became
    created     BIGINT NOT NULL
);
CREATE INDEX inbox_session ON inbox (workflow_id, event, seq);

CREATE TABLE invocations (
    id          TEXT PRIMARY KEY,
    workflow_id TEXT NOT NULL,
    status      TEXT NOT NULL,
    denied      BIGINT NOT NULL,
    created     BIGINT NOT NULL,
    ended       BIGINT NOT NULL
);
CREATE INDEX invocations_session ON invocations (workflow_id);

CREATE TABLE calls (
    seq         {{serial}},
    id          TEXT NOT NULL UNIQUE,
    workflow_id TEXT NOT NULL,
    invocation  TEXT NOT NULL,
    event       TEXT NOT NULL,
    agent       TEXT NOT NULL,
    toolset     TEXT NOT NULL,
    name        TEXT NOT NULL,
    args        TEXT NOT NULL,
    idempotent  BIGINT NOT NULL,
    started     BIGINT NOT NULL,
    answer      TEXT NOT NULL,
    asking      TEXT NOT NULL,
    asked       BIGINT NOT NULL
);
CREATE INDEX calls_open ON calls (workflow_id, invocation, answer);

CREATE TABLE scoped (
    app   TEXT NOT NULL,
    usr   TEXT NOT NULL, -- empty for the scope of the app
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (app, usr, name)
);

CREATE TABLE listings (
    id          TEXT PRIMARY KEY,
    workflow_id TEXT NOT NULL,
    toolset     TEXT NOT NULL,
    body        TEXT NOT NULL,
    created     BIGINT NOT NULL
);
CREATE INDEX listings_session ON listings (workflow_id);

CREATE TABLE slots (
    id      TEXT PRIMARY KEY,
    body    TEXT NOT NULL,
    touched BIGINT NOT NULL
);

CREATE TABLE requests (
    seq         {{serial}},
    id          TEXT NOT NULL UNIQUE,
    app         TEXT NOT NULL,
    usr         TEXT NOT NULL,
    session     TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    invocation  TEXT NOT NULL,
    agent       TEXT NOT NULL,
    call        TEXT NOT NULL,
    slot        TEXT NOT NULL,
    need        TEXT NOT NULL,
    event       TEXT NOT NULL,
    status      TEXT NOT NULL,
    correlator  TEXT NOT NULL,
    deadline    BIGINT NOT NULL,
    created     BIGINT NOT NULL,
    ended       BIGINT NOT NULL
);
CREATE INDEX requests_slot ON requests (slot, status);
CREATE INDEX requests_owner ON requests (app, usr, status);
CREATE INDEX requests_session ON requests (workflow_id, status);

CREATE TABLE flows (
    state_hash    TEXT PRIMARY KEY,
    request       TEXT NOT NULL,
    app           TEXT NOT NULL,
    usr           TEXT NOT NULL,
    status        TEXT NOT NULL,
    cookie_hash   TEXT NOT NULL,
    verifier      BYTEA,
    nonce         BYTEA,
    code          BYTEA,
    client_secret BYTEA,
    body          TEXT NOT NULL, -- provider, client, redirect URI, scopes, resource
    created       BIGINT NOT NULL,
    expires       BIGINT NOT NULL,
    lease         BIGINT NOT NULL,
    resumed       BIGINT NOT NULL
);
CREATE INDEX flows_request ON flows (request, status);
CREATE INDEX flows_status ON flows (status, lease);

-- Hashes of codes that came with the wrong cookie or user: somebody else has seen them.
CREATE TABLE refused_codes (
    state_hash TEXT NOT NULL,
    code_hash  TEXT NOT NULL,
    PRIMARY KEY (state_hash, code_hash)
);

CREATE TABLE grants (
    id            TEXT PRIMARY KEY,
    slot          TEXT NOT NULL UNIQUE,
    app           TEXT NOT NULL,
    usr           TEXT NOT NULL,
    domain        TEXT NOT NULL,
    issuer        TEXT NOT NULL,
    resource      TEXT NOT NULL,
    client        TEXT NOT NULL,
    version       BIGINT NOT NULL,
    scopes        TEXT NOT NULL,
    access        BYTEA NOT NULL,
    refresh       BYTEA,
    client_secret BYTEA,
    body          TEXT NOT NULL, -- provider and client
    expires       BIGINT NOT NULL,
    lease         BIGINT NOT NULL,
    created       BIGINT NOT NULL,
    updated       BIGINT NOT NULL
);
CREATE INDEX grants_owner ON grants (app, usr, updated);

CREATE TABLE versions (
    slot    TEXT PRIMARY KEY,
    version BIGINT NOT NULL
);

CREATE TABLE registrations (
    issuer       TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    client_id    TEXT NOT NULL,
    secret       BYTEA,
    auth         TEXT NOT NULL,
    created      BIGINT NOT NULL,
    expires      BIGINT NOT NULL,
    PRIMARY KEY (issuer, redirect_uri)
);

CREATE TABLE callbacks (
    digest TEXT PRIMARY KEY,
    issuer TEXT NOT NULL
);

CREATE TABLE outbox (
    seq         {{serial}},
    id          TEXT NOT NULL UNIQUE,
    workflow_id TEXT NOT NULL,
    signal      TEXT NOT NULL,
    payload     TEXT NOT NULL,
    subject     TEXT NOT NULL, -- the request or inbox row that it announces
    done        BIGINT NOT NULL,
    sent        BIGINT NOT NULL,
    failed      BIGINT NOT NULL,
    due         BIGINT NOT NULL,
    created     BIGINT NOT NULL
);
CREATE INDEX outbox_due ON outbox (done, due);
CREATE INDEX outbox_subject ON outbox (subject);

CREATE TABLE audit (
    seq     {{serial}},
    at      BIGINT NOT NULL,
    app     TEXT NOT NULL,
    usr     TEXT NOT NULL,
    session TEXT NOT NULL,
    request TEXT NOT NULL,
    action  TEXT NOT NULL,
    detail  TEXT NOT NULL
);
CREATE INDEX audit_owner ON audit (app, usr, seq);

-- +goose Down
DROP TABLE audit;
DROP TABLE outbox;
DROP TABLE callbacks;
DROP TABLE registrations;
DROP TABLE versions;
DROP TABLE grants;
DROP TABLE refused_codes;
DROP TABLE flows;
DROP TABLE requests;
DROP TABLE slots;
DROP TABLE listings;
DROP TABLE scoped;
DROP TABLE calls;
DROP TABLE invocations;
DROP TABLE inbox;
DROP TABLE events;
DROP TABLE runs;
DROP TABLE sessions;
DROP TABLE apps;
DROP TABLE definitions;
DROP TABLE meta;
