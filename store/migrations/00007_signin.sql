-- +goose Up
-- Browsers in which people have signed in. id_hash is SHA-256 of the cookie; used is when the session was seen last, to the
-- minute.
CREATE TABLE people_sessions (
    id_hash TEXT PRIMARY KEY,
    issuer  TEXT NOT NULL,
    subject TEXT NOT NULL,
    name    TEXT NOT NULL,
    created BIGINT NOT NULL,
    used    BIGINT NOT NULL,
    expires BIGINT NOT NULL
);
CREATE INDEX people_sessions_expires ON people_sessions (expires);

-- Sign-ins that have come back once, by the hash of their state, for as long as they could come back again.
CREATE TABLE spent_signins (
    state_hash TEXT PRIMARY KEY,
    expires    BIGINT NOT NULL
);
CREATE INDEX spent_signins_expires ON spent_signins (expires);

-- Answers of providers to logins that belong to a user of a service, until the service has checked whose browser brought
-- them. nonce_hash is SHA-256 of what the service gets; callback is sealed.
CREATE TABLE parked_callbacks (
    nonce_hash TEXT PRIMARY KEY,
    service    TEXT NOT NULL,
    state_hash TEXT NOT NULL,
    callback   BYTEA NOT NULL,
    expires    BIGINT NOT NULL
);
CREATE UNIQUE INDEX parked_callbacks_state ON parked_callbacks (state_hash);
CREATE INDEX parked_callbacks_expires ON parked_callbacks (expires);

-- +goose Down
DROP TABLE parked_callbacks;
DROP TABLE spent_signins;
DROP TABLE people_sessions;
