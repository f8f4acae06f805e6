#!/usr/bin/env bash
# The checks of this module: go vet and all tests with the race detector,
# including those in Chromium in phone and desktop size. Missing tools are
# installed from Debian's packages; npm is needed for axe-core only. All servers
# listen on loopback ports. The screenshots of all pages are kept in browser/out.
set -euo pipefail
cd "$(dirname "$0")"
export DEBIAN_FRONTEND=noninteractive

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
fail() { printf 'ci.sh: %s\n' "$*" >&2; exit 1; }
has_postgres() { compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || command -v postgres >/dev/null; }

missing=()
command -v chromium >/dev/null || missing+=(chromium fonts-dejavu-core)
command -v zbarimg >/dev/null || missing+=(zbar-tools)
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
has_postgres || missing+=(postgresql)
if [ ${#missing[@]} -gt 0 ]; then
	as_root apt-get update
	# The package must not create a cluster: the tests create their own.
	as_root mkdir -p /etc/postgresql-common
	[ -e /etc/postgresql-common/createcluster.conf ] || echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
	as_root apt-get install -y --no-install-recommends "${missing[@]}"
fi
for tool in chromium zbarimg node npm; do command -v "$tool" >/dev/null || fail "$tool is missing"; done
has_postgres || fail 'PostgreSQL is missing'

npm ci --prefix browser --ignore-scripts --no-audit --no-fund --loglevel=error

go vet ./...
tests=$(go test -list '^Test' ./... | grep '^Test') || fail 'there are no tests'
rm -rf browser/out
log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -race -shuffle=on -count=1 -v -timeout 8m ./... | tee "$log" | grep -Ev '^(=== |\s*--- PASS)'
! grep -E '^\s*--- SKIP' "$log" || fail 'tests were skipped'
for name in $tests; do grep -q "^--- PASS: $name " "$log" || fail "$name did not run"; done

# What becomes of a repeated order is not documented: all but the pages pass with each of three.
for repeated in same refused; do
	go test -count=1 -skip TestBrowser ./... -repeated "$repeated"
done

long=$(wc -l ./*.go web/*.html web/*/* | awk '$2 != "total" && $1 > 300')
[ -z "$long" ] || fail "more than 300 lines: $long"
