-- +goose Up
-- When a run was seen first: one that comes after the end of an invocation and goes on with it is a reset.
ALTER TABLE runs ADD COLUMN entered BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE runs DROP COLUMN entered;
