#!/usr/bin/env bash
# Runs the checks of this module, against SQLite and against a PostgreSQL server
# that the tests start; .ci/postgres installs it if it is missing. With
# SQLGUARD_POSTGRES, the DSN of a server, the tests use that server.
set -euo pipefail
cd "$(dirname "$0")"

[ -n "${SQLGUARD_POSTGRES:-}" ] || bash ../.ci/postgres

bash ../.ci/debian pgbouncer

go vet ./...
go test -race -shuffle=on ./...
