-- +goose Up
-- How often the person was reminded of the request, and when last.
ALTER TABLE requests ADD COLUMN reminders BIGINT NOT NULL DEFAULT 0;
ALTER TABLE requests ADD COLUMN reminded BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE requests DROP COLUMN reminded;
ALTER TABLE requests DROP COLUMN reminders;
