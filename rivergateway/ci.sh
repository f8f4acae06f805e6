#!/usr/bin/env bash
# Runs the checks of this module against a PostgreSQL server that the tests start. If
# PostgreSQL is missing, Debian's packages are installed first. The proof over processes
# takes a minute; RIVERGATEWAY_PROOF=1h repeats it for an hour.
set -euo pipefail
cd "$(dirname "$0")"

bash ../.ci/postgres
go vet ./...
go test -race -shuffle=on -skip '^TestProof$' ./...
# What becomes of a repeated order is not documented: the tests of money pass with each of three.
pids=()
for repeated in same refused; do
	go test -count=1 -run '^TestInvoice' ./... -repeated "$repeated" &
	pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
go test -count=1 -timeout 2h -run '^TestProof$' -v ./... # 16 processes are slow under the race detector
