.PHONY: test lint cover bench fuzz proof soak

test:
	go test -race -shuffle=on ./...

lint:
	GOBIN=$(CURDIR)/.bin go -C tools install tool
	test -z "$$(.bin/gofumpt -l .)"
	go vet ./...
	.bin/staticcheck ./...

cover:
	bash .ci/cover 95 . ./gatewaytest

bench:
	go test -run '^$$' -bench . -benchmem .

fuzz:
	bash .ci/fuzz 1m

proof:
	bash contract/ci.sh
	bash sqlguard/ci.sh

soak:
	SOAK=10m bash contract/ci.sh
