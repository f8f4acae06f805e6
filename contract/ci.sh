#!/usr/bin/env bash
# Vets this module and runs the whole proof. SOAK says how long the soak goes on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

go vet ./...
go test -race -count=1 -timeout 15m ./...
go test -count=1 -timeout 30m -run '^TestSoak$' -v -soak "${SOAK:-60s}" .
