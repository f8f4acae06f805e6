#!/usr/bin/env bash
# ci.sh [short]: vets this module and runs the whole proof. SOAK is the duration of the
# soak test. short is for another release of Go, after the whole proof with the first:
# everything once, without the race detector, with a tenth of the random schedules and a
# soak of five seconds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

fail() { echo "ci: $*" >&2; exit 1; }
[ "${1:-short}" = short ] || fail "there is no $1"

work=$(mktemp -d)
trap 'rm -rf "$work" codegen/api_gen_test.go' EXIT

# What a generator makes of the document is not kept. It must make it without a warning,
# which a download is not.
go -C ../tools build -o "$work/" github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen
warnings=$(go generate ./codegen 2>&1)
[ -z "$warnings" ] || fail "$warnings"
[ "${1:-}" = short ] || go vet -tags codegen ./...

go test -c -o "$work/contract.test" .
go test -c -o "$work/suite.test" ./suite
go test -c -o "$work/codegen.test" -tags codegen ./codegen

# A test binary passes when a pattern matches nothing.
has() { # PACKAGE TEST...
	local listed test
	listed=$("$work/$1.test" -test.list .)
	for test in "${@:2}"; do
		grep -qx "$test" <<<"$listed" || fail "$1 has no $test"
	done
}
has contract TestCreateInvoice_CutAtEveryByte TestFaults_Sockets TestFaults_HTTP2 TestHTTP2 TestHTTP2_EveryBoundary \
	TestHostile TestStray TestStray_WrappedTransport TestHandshakes TestUnknownShare \
	TestConnections TestRepeatableOrders_gateways TestRepeatedOrders TestDeafPeer TestLyingContext TestLateReader TestLogOfHTTP2 TestToxi TestEveryCall_faults TestRapid TestLiteral TestLiteral_doesHarm TestSoak \
	TestOpenAPI_requests TestOpenAPI_responses_in_every_shape TestOpenAPI_responses_under_every_fault TestOpenAPI_rejects_requests TestOpenAPI_suite
has suite TestRun_against_gatewaytest
has codegen TestClient_documented TestClient_invoice TestServer TestServer_invoice

go test -count=1 -tags codegen ./codegen
if [ "${1:-}" = short ]; then
	go test -count=1 -timeout 15m . -rapid.checks=1000
	go test -count=1 ./suite
	exit
fi
# Who delivers an invoice twice: the table of docs/production.md.
bash ../.ci/debian nginx=nginx-light haproxy apache2=apache2-bin caddy varnishd=varnish squid
go run ./intermediaries -check
go test -race -count=1 -timeout 15m .
go test -race -count=1 ./suite
"$work/contract.test" -test.timeout 30m -test.run '^TestSoak$' -test.v -soak "${SOAK:-30s}"
