#!/usr/bin/env bash
# Lets programs that others have written judge api/openapi.yaml, the client and
# the stand-in: Redocly lints the document, Prism serves it and stands between
# client and stand-in, WireMock plays its stubs and faults. They come from npm as
# npm/package-lock.json has them; Java, where it is missing, from Debian's
# packages. All of them listen on loopback only and end with the tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

if ! command -v java >/dev/null; then
	export DEBIAN_FRONTEND=noninteractive
	as_root apt-get update
	as_root apt-get install -y --no-install-recommends default-jre-headless
fi
command -v npm >/dev/null || { echo 'npm is missing: install Node.js, 20.19 or later' >&2; exit 1; }
npm ci --prefix npm --ignore-scripts --no-audit --no-fund --no-update-notifier

REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true \
	npm/node_modules/.bin/redocly lint --config ../api/redocly.yaml ../api/openapi.yaml

go test -race -count=1 -timeout 10m ./suite ./prism ./wiremock
