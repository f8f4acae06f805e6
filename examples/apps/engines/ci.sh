#!/usr/bin/env bash
# The checks of this module, without the race detector: nearly all of the code that it
# would compile is that of the engines.
set -euo pipefail
cd "$(dirname "$0")"

go vet ./...
go test -shuffle=on ./...
