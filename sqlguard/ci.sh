#!/usr/bin/env bash
# Runs the checks of this module, against SQLite and against a PostgreSQL server
# that the tests start; .ci/postgres installs it if it is missing. With
# SQLGUARD_POSTGRES, the DSN of a server, the tests use that server. PgBouncer is of
# Debian's packages too, and no service of it is left running.
set -euo pipefail
cd "$(dirname "$0")"

[ -n "${SQLGUARD_POSTGRES:-}" ] || bash ../.ci/postgres

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
if [ ! -x /usr/sbin/pgbouncer ] && ! command -v pgbouncer >/dev/null; then
	as_root apt-get update
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends pgbouncer
	as_root update-rc.d pgbouncer disable
	as_root /etc/init.d/pgbouncer stop
fi

go vet ./...
go test -race -shuffle=on ./...
