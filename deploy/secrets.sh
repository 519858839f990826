#!/bin/sh
# Makes the secret files of docker-compose.yml that are missing, in the folder that is named. Others on this machine cannot enter the
# folder; the files themselves are readable, since each container reads its own as a user of its own.
set -eu
dir=${1:-secrets}
mkdir -p "$dir/agents"
chmod 700 "$dir"
for name in postgres_password tarry_db_password temporal_db_password oidc_client_secret; do
  if [ -e "$dir/$name" ]; then continue; fi
  (umask 077 && head -c 32 /dev/urandom | od -An -vtx1 | tr -d ' \n' >"$dir/$name.new")
  chmod 444 "$dir/$name.new"
  mv "$dir/$name.new" "$dir/$name"
done
for name in openai_api_key gemini_api_key; do
  if [ -e "$dir/$name" ]; then continue; fi
  : >"$dir/$name" # no key
  chmod 444 "$dir/$name"
done
