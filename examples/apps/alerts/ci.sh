#!/usr/bin/env bash
# The checks of this module, and with promtool those of the alert rules. Where that is missing it is
# taken out of Debian's package of Prometheus, which is not installed: that would start a server.
set -euo pipefail
cd "$(dirname "$0")"

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

unpack() {
  cd "$directory"
  apt-get download prometheus || { as_root apt-get update && apt-get download prometheus; }
  dpkg -x prometheus_*.deb .
}

PROMTOOL=$(command -v promtool) || { (unpack) >&2 && PROMTOOL=$directory/usr/bin/promtool; }
export PROMTOOL
"$PROMTOOL" check rules --lint=all --lint-fatal rules.yml
"$PROMTOOL" test rules rules_test.yml
go vet ./...
go test -race -shuffle=on ./...
