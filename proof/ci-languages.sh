#!/usr/bin/env bash
# Shows `gateway mock` from other languages: each program in languages/ loses a response
# after its invoice was committed, and finds exactly one invoice through the control API.
# The types of the program in TypeScript are made of api/openapi.yaml and api/mock.yaml by
# openapi-typescript, which npm installs. What is missing of curl, Python (3.9 or later) and
# Node.js (18 or later) is installed from Debian's packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

fail() { echo "ci-languages: $*" >&2; exit 1; }
bash ../.ci/debian curl python3 node=nodejs npm

work=$(mktemp -d)
mock=
trap '[ -z "$mock" ] || kill "$mock" 2>/dev/null || true; rm -rf "$work" languages/*.d.ts' EXIT

npm ci --prefix languages --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error
bin=$PWD/languages/node_modules/.bin
"$bin/openapi-typescript" ../api/openapi.yaml --output languages/gateway.d.ts
"$bin/openapi-typescript" ../api/mock.yaml --output languages/mock.d.ts
"$bin/tsc" --project languages --outDir "$work"
go -C .. build -o "$work/gateway" ./cmd/gateway

"$work/gateway" mock -addr 127.0.0.1:18091 -env >"$work/env" 2>"$work/log" &
mock=$!
"$work/gateway" mock -wait -addr 127.0.0.1:18091 || fail "the mock has not started: $(cat "$work/log")"
. "$work/env"

# lost NAME COMMAND...: runs a program for an order of its own, and for that order again,
# when there are two invoices: the program has looked only if it fails then.
lost() {
	local name=$1 output
	shift
	"$@" "order-$name" || fail "$name fails"
	output=$("$@" "order-$name" 2>&1) && fail "$name finds one invoice where there are two: $output"
	grep -q "order-$name has 2 invoices" <<<"$output" || fail "$name fails otherwise: $output"
}
lost curl bash languages/lost.sh
lost Python python3 languages/lost.py
lost TypeScript node "$work/lost.mjs"

kill -INT "$mock"
wait "$mock" || fail "the mock ends with $?"
mock=
cat "$work/log"
grep -qx 'Invoices committed: 6' "$work/log" || fail 'the mock has not committed two invoices for each language'
grep -q '  create_invoice: 10, of which 3 had a success and 7 met a fault' "$work/log" || fail 'a request was repeated, or met no fault'
