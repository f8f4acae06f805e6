#!/usr/bin/env bash
# ci.sh: generates a client of api/openapi.yaml with ogen, and runs it against the stand-in.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

fail() { echo "ci: $*" >&2; exit 1; }
trap 'rm -f oas_*_gen.go' EXIT

# ogen says what it leaves out, such as a type that it does not know, and passes.
go tool ogen --config ogen.yml --target . --package ogen ../../api/openapi.yaml
[ -f oas_client_gen.go ] || fail 'ogen has made no client'
go vet -tags ogen ./...
listed=$(go test -tags ogen -list .)
grep -qx TestClient <<<"$listed" || fail 'there is no TestClient'
go test -count=1 -tags ogen ./...
