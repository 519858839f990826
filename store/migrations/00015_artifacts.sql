-- +goose Up
-- Files of sessions and users; content is in clear, as that of events. workflow_id is the session's, empty for names that begin
-- with user:. maker is the call or event that saved it, with the number of its save of the name; empty for what a client saved.
CREATE TABLE artifacts (
    seq         {{serial}},
    app         TEXT NOT NULL,
    usr         TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    name        TEXT NOT NULL,
    version     BIGINT NOT NULL,
    maker       TEXT NOT NULL,
    nth         BIGINT NOT NULL,
    kind        TEXT NOT NULL, -- text, data or file
    mime        TEXT NOT NULL,
    custom      TEXT NOT NULL, -- JSON
    label       TEXT NOT NULL, -- displayName
    body        BYTEA NOT NULL, -- in clear: the text, the data or the URI
    size        BIGINT NOT NULL, -- as it counts
    created     BIGINT NOT NULL,
    UNIQUE (app, usr, workflow_id, name, version)
);
CREATE UNIQUE INDEX artifacts_maker ON artifacts (maker, name, nth) WHERE maker <> '';
CREATE INDEX artifacts_size ON artifacts (app, usr, size);
CREATE INDEX artifacts_session ON artifacts (workflow_id);

-- What was said in sessions that were added to memory. words: those by which it is found, between spaces.
CREATE TABLE memories (
    seq         {{serial}},
    app         TEXT NOT NULL,
    usr         TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    event       TEXT NOT NULL,
    author      TEXT NOT NULL,
    said        BIGINT NOT NULL,
    body        TEXT NOT NULL,
    words       TEXT NOT NULL,
    size        BIGINT NOT NULL
);
CREATE INDEX memories_user ON memories (app, usr, seq);
CREATE INDEX memories_session ON memories (workflow_id);

-- +goose Down
DROP TABLE memories;
DROP TABLE artifacts;
