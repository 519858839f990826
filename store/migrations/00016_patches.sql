-- +goose Up
-- What clients wrote to a session's state besides any message: the newest event that says so, and all of it together, of the
-- session's own scope, as JSON. null is a key that was deleted.
ALTER TABLE sessions ADD COLUMN patch TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN patched TEXT NOT NULL DEFAULT '{}';

-- Traces are asked for by the id of a session, without its user.
CREATE INDEX sessions_id ON sessions (id, app);

-- +goose Down
DROP INDEX sessions_id;
ALTER TABLE sessions DROP COLUMN patched;
ALTER TABLE sessions DROP COLUMN patch;
