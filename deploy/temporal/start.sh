#!/bin/sh
# Temporal's image takes the database's password from a variable alone.
set -eu
POSTGRES_PWD=$(cat /run/secrets/temporal_db_password)
export POSTGRES_PWD
exec /etc/temporal/entrypoint.sh
