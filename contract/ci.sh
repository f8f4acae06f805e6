#!/usr/bin/env bash
# Vets this module and runs the whole proof. SOAK is the duration of the soak test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# go test passes when a pattern matches nothing.
for test in TestCreateInvoice_CutAtEveryByte TestFaults_Sockets TestFaults_HTTP2 TestHTTP2 TestHTTP2_EveryBoundary \
	TestHostile TestStray TestStray_PlainTransport \
	TestConnections TestDeafPeer TestLyingContext TestLateReader TestLogOfHTTP2 TestToxi TestEveryCall_faults TestRapid TestSoak; do
	listed=$(go test -list "^$test\$" .)
	grep -qx "$test" <<<"$listed" || { echo "ci: there is no $test" >&2; exit 1; }
done
go vet ./...
# Over many thousand synctest bubbles the race detector itself crashes now and then
# (go.dev/issue/78156), so it checks fewer schedules than are run without it.
go test -race -count=1 -timeout 15m . -rapid.checks=1000
go test -count=1 -timeout 15m -run '^TestRapid$' -v .
go test -count=1 -timeout 30m -run '^TestSoak$' -v -soak "${SOAK:-60s}" .
