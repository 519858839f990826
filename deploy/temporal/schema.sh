#!/bin/sh
# Brings the tables of Temporal up to date; may be run again. temporal-sql-tool reads SQL_HOST and the like from the environment.
set -eu
SQL_PASSWORD=$(cat /run/secrets/temporal_db_password)
export SQL_PASSWORD
for name in temporal visibility; do
  database=temporal
  if [ "$name" = visibility ]; then database=temporal_visibility; fi
  temporal-sql-tool --database "$database" setup-schema --version 0.0
  temporal-sql-tool --database "$database" update-schema --schema-name "postgresql/v12/$name"
done
