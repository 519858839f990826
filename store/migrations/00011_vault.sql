-- +goose Up
-- Processes that seal, and what they have said of their keyset. main: the key that they seal with; known: JSON list of ids.
CREATE TABLE vault_holders (
    id    TEXT PRIMARY KEY,
    name  TEXT NOT NULL,
    main  BIGINT NOT NULL,
    known TEXT NOT NULL,
    since BIGINT NOT NULL, -- when main was said first
    seen  BIGINT NOT NULL
);

CREATE TABLE vault_locks (
    name    TEXT PRIMARY KEY,
    holder  TEXT NOT NULL,
    expires BIGINT NOT NULL
);

-- What the secret of a dynamic client is bound to. Nobody knows it of those that are there: they are registered anew. Grants
-- and logins under way have copies of their own.
ALTER TABLE registrations ADD COLUMN token_endpoint TEXT NOT NULL DEFAULT '';
DELETE FROM registrations WHERE secret IS NOT NULL;

-- +goose Down
ALTER TABLE registrations DROP COLUMN token_endpoint;
DROP TABLE vault_locks;
DROP TABLE vault_holders;
