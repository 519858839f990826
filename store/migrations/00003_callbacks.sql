-- +goose Up
-- used: when a login last needed the path, in microseconds; document: 1 where our client is the metadata document, which
-- lists the path.
ALTER TABLE callbacks ADD COLUMN used BIGINT NOT NULL DEFAULT 0;
ALTER TABLE callbacks ADD COLUMN document BIGINT NOT NULL DEFAULT 0;
CREATE INDEX callbacks_document ON callbacks (document, used);

-- +goose Down
DROP INDEX callbacks_document;
ALTER TABLE callbacks DROP COLUMN document;
ALTER TABLE callbacks DROP COLUMN used;
