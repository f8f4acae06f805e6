#!/usr/bin/env bash
# Runs the checks of this module, against SQLite and against a PostgreSQL server
# that the tests start. If PostgreSQL is missing, Debian's packages are installed
# first, without a cluster, so that no service is left running. With
# SQLGUARD_POSTGRES, the DSN of a server, the tests use that server.
set -euo pipefail
cd "$(dirname "$0")"

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

install_postgres() {
	export DEBIAN_FRONTEND=noninteractive
	as_root apt-get update
	as_root apt-get install -y --no-install-recommends postgresql-common
	as_root sed -ri 's/^#?\s*create_main_cluster\s.*$/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
	as_root apt-get install -y --no-install-recommends postgresql
}

if [ -z "${SQLGUARD_POSTGRES:-}" ] && ! compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null && ! command -v postgres >/dev/null; then
	install_postgres
fi

go vet ./...
go test -race -shuffle=on ./...
