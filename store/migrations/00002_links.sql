-- +goose Up
-- One link for all requests of a person that one login answers: the id of the request that leads.
ALTER TABLE requests ADD COLUMN link TEXT NOT NULL DEFAULT '';
UPDATE requests SET link = id;
CREATE INDEX requests_link ON requests (link, status);

-- The last request behind the link when the flow began, so that a denial ends what its page showed. 0: its own request.
ALTER TABLE flows ADD COLUMN seen BIGINT NOT NULL DEFAULT 0;

-- How long the tokens were good for when they were stored: processes' clocks differ, an expiry is one process's word.
ALTER TABLE grants ADD COLUMN life BIGINT NOT NULL DEFAULT 0;
UPDATE grants SET life = expires - updated WHERE expires > updated;

-- +goose Down
ALTER TABLE grants DROP COLUMN life;
ALTER TABLE flows DROP COLUMN seen;
DROP INDEX requests_link;
ALTER TABLE requests DROP COLUMN link;
