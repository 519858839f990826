-- +goose Up
-- How many answers of a login were refused; each is a row in audit and mostly one in refused_codes, so that they end.
ALTER TABLE flows ADD COLUMN refusals BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE flows DROP COLUMN refusals;
