-- +goose Up
-- Who acted, where a person did: the subject of the one who had signed in. NULL for what runs and deadlines do.
ALTER TABLE audit ADD COLUMN actor TEXT;

-- A person's rows, in order, in all apps.
CREATE INDEX audit_user ON audit (usr, seq);
DROP INDEX audit_owner;

-- A person's connected accounts, in order.
CREATE INDEX grants_user ON grants (usr, app, issuer, id);
DROP INDEX grants_owner;

-- When a grant's token was handed out last, to the minute.
ALTER TABLE grants ADD COLUMN used BIGINT NOT NULL DEFAULT 0;

-- Audit rows are added and nothing else.
{{if postgres -}}
-- +goose StatementBegin
CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit is append-only';
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only();
{{- else -}}
-- +goose StatementBegin
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'audit is append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, 'audit is append-only');
END;
-- +goose StatementEnd
{{- end}}

-- +goose Down
{{if postgres -}}
DROP TRIGGER audit_append_only ON audit;
DROP FUNCTION audit_append_only;
{{- else -}}
DROP TRIGGER audit_no_delete;
DROP TRIGGER audit_no_update;
{{- end}}
ALTER TABLE grants DROP COLUMN used;
CREATE INDEX grants_owner ON grants (app, usr, updated);
DROP INDEX grants_user;
CREATE INDEX audit_owner ON audit (app, usr, seq);
DROP INDEX audit_user;
ALTER TABLE audit DROP COLUMN actor;
