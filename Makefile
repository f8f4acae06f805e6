.PHONY: api test lint cover bench fuzz mutants proof languages soak

# No target uses a gateway that the environment names.
unexport $(filter GATEWAY_%,$(.VARIABLES))

test:
	go test -race -shuffle=on ./...

lint:
	bash .ci/lint

cover:
	bash .ci/cover 95

bench:
	bash .ci/bench

fuzz:
	FUZZTIME=1m bash .ci/fuzz

mutants:
	bash .ci/mutants -update

proof:
	bash contract/ci.sh
	bash sqlguard/ci.sh

api:
	bash .ci/api -update

languages:
	bash contract/ci-languages.sh

soak:
	SOAK=10m bash contract/ci.sh
