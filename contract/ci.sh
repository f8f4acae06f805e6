#!/usr/bin/env bash
# Vets this module and runs the whole proof. SOAK says how long the soak goes on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

go vet ./...
# Over many thousand synctest bubbles the race detector itself crashes now and then
# (go.dev/issue/78156), so it watches fewer schedules than are played without it.
go test -race -count=1 -timeout 15m . -rapid.checks=1000
go test -count=1 -timeout 15m -run '^TestRapid$' -v .
go test -count=1 -timeout 30m -run '^TestSoak$' -v -soak "${SOAK:-60s}" .
