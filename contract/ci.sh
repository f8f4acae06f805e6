#!/usr/bin/env bash
# Vets this module and runs the whole proof. SOAK is the duration of the soak test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

work=$(mktemp -d)
trap 'rm -rf "$work" codegen/api_gen_test.go' EXIT
go vet ./...
go test -c -o "$work/contract.test" .

# A test binary passes when a pattern matches nothing.
listed=$("$work/contract.test" -test.list .)
for test in TestCreateInvoice_CutAtEveryByte TestFaults_Sockets TestFaults_HTTP2 TestHTTP2 TestHTTP2_EveryBoundary \
	TestHostile TestStray TestStray_PlainTransport TestHandshakes TestUnknownShare \
	TestConnections TestDeafPeer TestLyingContext TestLateReader TestLogOfHTTP2 TestToxi TestEveryCall_faults TestRapid TestSoak; do
	grep -qx "$test" <<<"$listed" || { echo "ci: there is no $test" >&2; exit 1; }
done
# Over many thousand synctest bubbles the race detector itself crashes now and then
# (go.dev/issue/78156), so it checks fewer schedules than are run without it.
go test -race -count=1 -timeout 15m . -rapid.checks=1000
"$work/contract.test" -test.timeout 15m -test.run '^TestRapid$' -test.v
"$work/contract.test" -test.timeout 30m -test.run '^TestSoak$' -test.v -soak "${SOAK:-60s}"

# What a generator makes of the document is not kept. It must make it without a warning,
# which a download is not.
go -C ../tools build -o "$work/" github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen
warnings=$(go generate ./codegen 2>&1)
[ -z "$warnings" ] || { echo "ci: $warnings" >&2; exit 1; }
go vet -tags codegen ./codegen
go test -tags codegen -count=1 ./codegen
