-- +goose Up
-- Whether the client that began an invocation wants to read along while models answer: with the message, and of the
-- invocation that a session is in.
ALTER TABLE inbox ADD COLUMN streaming BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN streaming BIGINT NOT NULL DEFAULT 0;

-- Pieces of answers that models are still giving. They go when the answer is stored, or by age.
CREATE TABLE partials (
    seq         {{serial}},
    workflow_id TEXT NOT NULL,
    invocation  TEXT NOT NULL,
    event       TEXT NOT NULL, -- what the whole answer will be
    body        TEXT NOT NULL,
    created     BIGINT NOT NULL
);
CREATE INDEX partials_session ON partials (workflow_id, seq);
CREATE INDEX partials_created ON partials (created);

-- +goose Down
DROP TABLE partials;
ALTER TABLE sessions DROP COLUMN streaming;
ALTER TABLE inbox DROP COLUMN streaming;
