-- +goose Up
-- Whose account at the provider a grant is for, from a verified ID token, and that token, encrypted; empty when there was none.
ALTER TABLE grants ADD COLUMN subject TEXT NOT NULL DEFAULT '';
ALTER TABLE grants ADD COLUMN label TEXT NOT NULL DEFAULT '';
ALTER TABLE grants ADD COLUMN id_token BYTEA;

-- A login on another device (RFC 8628): its codes, encrypted, how long to wait between two polls and when the next one is
-- due, in microseconds. due is 0 for logins that a browser brings back.
ALTER TABLE flows ADD COLUMN device BYTEA;
ALTER TABLE flows ADD COLUMN pace BIGINT NOT NULL DEFAULT 0;
ALTER TABLE flows ADD COLUMN due BIGINT NOT NULL DEFAULT 0;
CREATE INDEX flows_due ON flows (status, due);

-- +goose Down
DROP INDEX flows_due;
ALTER TABLE flows DROP COLUMN due;
ALTER TABLE flows DROP COLUMN pace;
ALTER TABLE flows DROP COLUMN device;
ALTER TABLE grants DROP COLUMN id_token;
ALTER TABLE grants DROP COLUMN label;
ALTER TABLE grants DROP COLUMN subject;
