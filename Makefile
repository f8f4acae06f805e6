.PHONY: api trace test lint cover bench fuzz mutants proof strangers soak

test:
	go test -race -shuffle=on ./...

lint:
	GOBIN=$(CURDIR)/.bin go -C tools install tool
	test -z "$$(.bin/gofumpt -l .)"
	go vet ./...
	.bin/staticcheck ./...
	for module in bench contract sqlguard examples/otel examples/shop; do (cd $$module && go vet ./... && $(CURDIR)/.bin/staticcheck ./...) || exit 1; done
	go list -f '{{.Dir}}' ./... | xargs .bin/gosec -quiet -color=false -nosec-require-rules -nosec-require-justification

cover:
	bash .ci/cover 95 . ./gatewaytest

bench:
	bash .ci/bench

fuzz:
	bash .ci/fuzz 1m

mutants:
	bash .ci/mutants 90

proof:
	bash contract/ci.sh
	bash sqlguard/ci.sh

api:
	bash .ci/api -update

trace:
	bash .ci/trace -update

strangers:
	bash contract/ci-strangers.sh

soak:
	SOAK=10m bash contract/ci.sh
