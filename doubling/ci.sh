#!/usr/bin/env bash
# The checks of this module. The last one fails when an outcome differs from
# docs/doubling.md. Without the race detector: nearly all of the code is of others.
set -euo pipefail
cd "$(dirname "$0")"

go vet ./...
go test -shuffle=on ./...
go run . -check
