#!/usr/bin/env bash
# The checks of this module: vet, all tests with the race detector, and the
# shop in Chromium, on a phone and on a desktop. What the tests need and is not
# there is installed from Debian's packages; npm is there for axe-core alone.
# Everything listens on loopback ports. The pictures of all pages are left in
# browser/out.
set -euo pipefail
cd "$(dirname "$0")"
export DEBIAN_FRONTEND=noninteractive

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

missing=()
command -v chromium >/dev/null || missing+=(chromium fonts-dejavu-core)
command -v zbarimg >/dev/null || missing+=(zbar-tools)
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
if ! compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null && ! command -v postgres >/dev/null; then
	missing+=(postgresql)
fi
if [ ${#missing[@]} -gt 0 ]; then
	as_root apt-get update
	# No cluster of the package's own: the tests start a server for themselves.
	as_root mkdir -p /etc/postgresql-common
	[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
	as_root apt-get install -y --no-install-recommends "${missing[@]}"
fi

npm ci --prefix browser --ignore-scripts --no-audit --no-fund --loglevel=error

go vet ./...
rm -rf browser/out
go test -race -shuffle=on -v -timeout 5m ./... | grep -Ev '^(=== |\s*--- PASS)' 

long=$(wc -l ./*.go web/*/* | awk '$2 != "total" && $1 > 300')
[ -z "$long" ] || { printf 'more than 300 lines:\n%s\n' "$long"; exit 1; }
