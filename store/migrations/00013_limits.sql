-- +goose Up
-- A row is locked while a person's open requests in an app are counted, so that two runs cannot both take the last place.
CREATE TABLE askers (
    app     TEXT NOT NULL,
    usr     TEXT NOT NULL,
    touched BIGINT NOT NULL,
    PRIMARY KEY (app, usr)
);

-- What is purged is found by these.
CREATE INDEX flows_expires ON flows (expires);
CREATE INDEX deliveries_due_all ON deliveries (ended, due);

-- Lists are read by the number of the row, newest first.
CREATE INDEX sessions_user ON sessions (usr, seq);
CREATE INDEX requests_user ON requests (usr, seq);

-- +goose Down
DROP INDEX requests_user;
DROP INDEX sessions_user;
DROP INDEX deliveries_due_all;
DROP INDEX flows_expires;
DROP TABLE askers;
