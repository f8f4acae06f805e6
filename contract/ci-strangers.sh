#!/usr/bin/env bash
# Checks api/openapi.yaml, the client and the stand-in with external programs:
# Redocly lints the document; Prism serves it as a mock and runs between client and
# stand-in as a proxy. Both come from npm, in the versions of npm/package-lock.json.
# Prism listens on loopback only and ends with the tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

fail() { echo "ci-strangers: $*" >&2; exit 1; }

for tool in go npm; do
	command -v "$tool" >/dev/null || fail "$tool is missing (Node.js must be 20.19 or later)"
done
npm ci --prefix npm --ignore-scripts --no-audit --no-fund --no-update-notifier
bin=$PWD/npm/node_modules/.bin
for tool in redocly prism; do
	[ -x "$bin/$tool" ] || fail "npm ci has not installed $tool"
done

export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
lint() { "$bin/redocly" lint --config ../api/redocly.yaml "$1"; }

lint ../api/openapi.yaml
# The rules have run only if they reject a document that breaks one.
broken=$(mktemp --suffix=.yaml)
trap 'rm -f "$broken"' EXIT
sed 's/operationId: getBalance/operationId: listCoinNetworks/' ../api/openapi.yaml >"$broken"
cmp -s ../api/openapi.yaml "$broken" && fail 'the document has no operationId getBalance to break'
output=$(lint "$broken" 2>&1) && fail 'redocly accepts a document with an operationId twice'
grep -q operation-operationId-unique <<<"$output" || fail "redocly does not lint: $output"

for test in ./suite:TestRun_against_gatewaytest ./prism:TestMock ./prism:TestProxy; do
	listed=$(go test -list "^${test#*:}\$" "${test%%:*}")
	grep -qx "${test#*:}" <<<"$listed" || fail "${test%%:*} has no ${test#*:}"
done
go test -race -count=1 -timeout 10m ./suite ./prism
