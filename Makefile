.PHONY: api test lint cover bench fuzz mutants proof literal languages soak

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

# 100,000 schedules over every guard and both HTTP versions: about half an hour.
literal:
	go -C contract test -count=1 -timeout 2h -run '^TestLiteral$$' -v . -schedules 90000
	go -C sqlguard test -count=1 -timeout 2h -run '^TestLiteral$$' -v . -schedules 10000

api:
	bash .ci/api -update

languages:
	bash contract/ci-languages.sh

soak:
	SOAK=10m bash contract/ci.sh
