#!/bin/sh
# Runs once, when the volume is empty: a user and databases for Tarry, and others for Temporal. Neither may see the other's.
set -eu
psql --no-psqlrc --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname=postgres <<'SQL'
\set tarry_password `cat /run/secrets/tarry_db_password`
\set temporal_password `cat /run/secrets/temporal_db_password`
CREATE ROLE tarry LOGIN PASSWORD :'tarry_password';
CREATE ROLE temporal LOGIN PASSWORD :'temporal_password';
CREATE DATABASE tarry OWNER tarry ENCODING 'UTF8' TEMPLATE template0;
CREATE DATABASE temporal OWNER temporal ENCODING 'UTF8' TEMPLATE template0;
CREATE DATABASE temporal_visibility OWNER temporal ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE tarry, temporal, temporal_visibility FROM PUBLIC;
SQL
