#!/usr/bin/env bash
# Runs the tests of this module, against SQLite and against a PostgreSQL server that
# they start, as those of sqlguard do.
set -euo pipefail
cd "$(dirname "$0")"

[ -n "${SQLGUARD_POSTGRES:-}" ] || bash ../../.ci/postgres

go vet ./...
go test -race -shuffle=on ./...
