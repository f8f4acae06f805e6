#!/usr/bin/env bash
# Checks api/openapi.yaml, the client and the stand-in with external programs:
# Redocly and Spectral lint the document; openapi-typescript makes types of it, which
# the TypeScript compiler applies to npm/bodies.ts; Prism serves it as a mock and runs
# between client and stand-in as a proxy. All come from npm, in the versions of
# npm/package-lock.json. Prism listens on loopback only and ends with the tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

fail() { echo "ci-strangers: $*" >&2; exit 1; }

for tool in go npm; do
	command -v "$tool" >/dev/null || fail "$tool is missing (Node.js must be 20.19 or later)"
done
npm ci --prefix npm --ignore-scripts --no-audit --no-fund --no-update-notifier
bin=$PWD/npm/node_modules/.bin
for tool in redocly spectral openapi-typescript tsc prism; do
	[ -x "$bin/$tool" ] || fail "npm ci has not installed $tool"
done

export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
document=../api/openapi.yaml
redocly() { "$bin/redocly" lint --config ../api/redocly.yaml "$1"; }
spectral() { "$bin/spectral" lint --ruleset ../api/spectral.yaml --fail-severity warn "$1"; }
types() { "$bin/openapi-typescript" "$1" --output npm/gateway.d.ts && "$bin/tsc" --project npm; }

broken=$(mktemp --suffix=.yaml)
trap 'rm -f "$broken" npm/gateway.d.ts' EXIT

redocly "$document"
spectral "$document"
types "$document"

# Each has checked something only if it rejects a document that is broken.
rejects() { # TOOL TEXT REPLACEMENT REPORTED
	sed "s/$2/$3/" "$document" >"$broken"
	cmp -s "$document" "$broken" && fail "the document has no '$2' to break"
	output=$("$1" "$broken" 2>&1) && fail "$1 accepts a document with '$3' for '$2'"
	grep -q -- "$4" <<<"$output" || fail "$1 rejects another thing than '$3': $output"
}
rejects redocly 'operationId: getBalance' 'operationId: listCoinNetworks' operation-operationId-unique
rejects spectral 'items: {}' 'minItems: 0' array-items
rejects types 'enum: \[PENDING, FAILED, COMPLETED\]' 'minLength: 1' bodies.ts

for test in ./suite:TestRun_against_gatewaytest ./prism:TestMock ./prism:TestProxy; do
	listed=$(go test -list "^${test#*:}\$" "${test%%:*}")
	grep -qx "${test#*:}" <<<"$listed" || fail "${test%%:*} has no ${test#*:}"
done
go test -race -count=1 -timeout 10m ./suite ./prism
