# `make run` and `make test` do all set-up by themselves on a machine with Go.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT  := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS := -X main.version=$(VERSION) -X main.commit=$(COMMIT)

# The invariants tag switches on checks inside the engine that are too expensive for production.
TAGS     := invariants
# How long the clients of the end-to-end test write, and how long make torture fuzzes each target.
DURATION ?= 60s
FUZZTIME ?= 5m

# make vet looks at all packages. go test would vet each test once more, and again with the race detector.
export GOFLAGS := $(filter-out -vet=off,$(shell go env GOFLAGS)) -vet=off

.DEFAULT_GOAL := help
.PHONY: help build run check format vet staticcheck unit test tools race kafka oracle oracle-carbon oracle-graphite oracle-logql oracle-victorialogs damage e2e stores tiers torture fuzz bench bench-memory bench-micro bench-report clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/shale.
	@mkdir -p bin
	go build -ldflags '$(LDFLAGS)' -o bin/shale ./cmd/shale

run: build ## Build and serve on the defaults: HTTP on 127.0.0.1:9480, Graphite on 127.0.0.1:2003, data in ./shale-data.
	./bin/shale serve

check: format vet staticcheck unit ## Run the checks that every commit must pass, in under 2 minutes.

format:
	@files=$$(gofmt -l bench cmd internal test) && \
	if [ -n "$$files" ]; then echo "not formatted; run gofmt -w on:"; echo "$$files"; exit 1; fi

vet:
	go vet -tags '$(TAGS),e2e' ./...

staticcheck:
	go tool staticcheck -tags '$(TAGS),e2e' ./...

unit:
	go test -short -timeout 20m -tags '$(TAGS)' ./...

# Installing mostly waits for the network, and tests with Kafka, object stores and other servers mostly wait, so they run
# next to what computes. The lanes all run bin/test/shale: then it is linked once.
test: ## Run everything that CI runs, in some 25 minutes on 2 cores.
	@.ci/tools compiler
	@.ci/lanes tools 'format vet staticcheck'
	@go build -o bin/test/shale ./cmd/shale
	@.ci/lanes 'unit oracle damage race' 'kafka stores' e2e

tools: # Install the programs that the tests need, if possible.
	@.ci/tools

race: ## Test the packages that share something between goroutines under the race detector.
	go test -race -short -timeout 30m -tags '$(TAGS)' $$(.ci/concurrent)

kafka: ## Kill, move and double partitions of a real Kafka.
	go test -tags '$(TAGS),e2e' -count=1 -timeout 25m -parallel 4 ./test/kafka

oracle: ## Compare the Prometheus API with Prometheus itself.
	cd internal/api/prom/oracle && go vet ./... && go test -count=1 ./...

oracle-victorialogs: ## Compare QUERIES (10000) random LogQL queries over the VictoriaLogs at VICTORIALOGS=URL with the same over Shale's own sources, and with Loki.
	go test -count=1 -timeout 2h -v ./internal/read/victorialogs -run TestDifferential -victorialogs $(VICTORIALOGS) -queries $(or $(QUERIES),10000) -seed $(or $(SEED),1)
	cd test/logql-oracle && go test -count=1 -timeout 2h -v ./metric -run TestVictoriaLogs -victorialogs $(VICTORIALOGS) -queries $(or $(QUERIES),10000) -seed $(or $(SEED),1)

# The tests with bad input mostly wait, so they run at the same time; tests of ./test/e2e that mostly wait are parallel.
e2e: ## Compare with real Prometheus servers, collectd, nc, logcli, VictoriaLogs and OpenTelemetry for DURATION (60s), and read the blocks with Python.
	@go test -tags '$(TAGS),e2e' -count=1 -timeout 20m ./test/badinput & attacked=$$!; \
	go test -tags '$(TAGS),e2e' -count=1 -timeout 30m -parallel 4 -v ./test/e2e -duration $(DURATION); tested=$$?; \
	wait $$attacked && exit $$tested
	go test -tags '$(TAGS),e2e' -count=1 -timeout 10m ./test/reader ./bench
	go test -tags '$(TAGS),e2e' -count=1 -timeout 10m ./bench/neighbours
	go test -tags '$(TAGS),e2e' -count=1 -timeout 15m ./internal/memcache/advise -run TestPrediction

damage: ## Damage 100 files at random, and ask 50 queries after each; make torture damages 1,000.
	go test -tags '$(TAGS)' -count=1 -v ./internal/app -run TestRandomDamage

# The names of the object stores that run more than their own tests: all of them in make torture. The tests of stores
# mostly wait, so queries, worlds and power cuts run at the same time.
STORES ?= versitygw
WORLDS ?= 3
CUTS   ?= 12
stores: ## Test buckets on real object stores: the contract, the check, the server; queries, worlds and power cuts on STORES (versitygw).
	@.ci/stores
	@go test -tags '$(TAGS),e2e' -count=1 -timeout 15m -parallel 4 ./test/objectstores & waits=$$!; failed=0; \
	for s in $(STORES); do \
	  echo "queries, worlds and power cuts on $$s"; \
	  go test -tags '$(TAGS)' -count=1 -timeout 1h ./test/promqltest ./test/stagetest -run 'TestStore|TestResults|TestResponses' -store $$s || failed=1; \
	  go test -tags '$(TAGS)' -count=1 -timeout 1h ./internal/app -run 'TestWorlds|TestPowerCuts' -store $$s -worlds $(WORLDS) -power-cuts $(CUTS) || failed=1; \
	done; \
	wait $$waits && exit $$failed
	go test -tags '$(TAGS)' -count=1 ./test/stagetest -run TestResults -tiers small+ssd+memcached

# Rows in which each pair of tiers, and each tier and a store, are on and off together. Little memory and a folder without
# caches are what all other tests have.
tiers: ## Ask all queries, and live through worlds, with every pair of cache tiers on and off, over a folder and versitygw; outside CI.
	@.ci/stores
	@for row in 'small+ssd+memcached ' 'ssd+memcached versitygw' 'small+memcached versitygw' 'small+ssd versitygw'; do \
	  set -- $$row; echo "tiers $$1 over $${2:-a folder}"; \
	  go test -tags '$(TAGS)' -count=1 -timeout 1h ./test/promqltest ./test/stagetest -run 'TestStore|TestResults|TestResponses' -tiers $$1 -store "$$2" && \
	  go test -tags '$(TAGS)' -count=1 -timeout 1h ./internal/app -run TestWorlds -tiers $$1 -store "$$2" -worlds $(WORLDS) || exit 1; \
	done

torture: tools ## Run long tests, long kills and long fuzzing (FUZZTIME for each target); outside CI.
	go vet -tags '$(TAGS),torture' ./...
	go test -count=1 -timeout 4h -tags '$(TAGS),torture' ./...
	go test -count=1 -timeout 1h -tags '$(TAGS)' ./internal/app -run 'TestResults$$' -result-worlds 300
	$(MAKE) kafka
	$(MAKE) e2e DURATION=10m
	go test -tags '$(TAGS),e2e' -count=1 -timeout 1h ./test/e2e -run TestKillLogs -log-kills 20
	KILLS=50 go test -tags '$(TAGS),e2e' -count=1 -timeout 3h -v ./test/kafka -run '^TestBroker$$/KillsUnderLoad$$'
	KILLS=20 QUESTIONS=45 go test -tags '$(TAGS),e2e' -count=1 -timeout 3h -v ./test/kafka -run 'TestKafka/(Whole|SecondGroup|RelabelUnderMoves)$$'
	$(MAKE) stores STORES='versitygw azurite fake-gcs-server' WORLDS=30 CUTS=200
	$(MAKE) tiers
	go test -tags '$(TAGS),e2e' -count=1 -timeout 2h -v ./test/objectstores -run 'TestFaults|TestFullDisk|TestRequests' -outage 10m
	$(MAKE) oracle-logql
	$(MAKE) fuzz

VENV ?= /tmp/graphite-web
oracle-graphite: ## Compare renders of Graphite with graphite-web, which is installed for it; outside CI, which replays recorded responses.
	python3 -m venv $(VENV)
	@# pyparsing 3.3 spends more than a minute of processor time on the first target.
	GRAPHITE_NO_PREFIX=True $(VENV)/bin/pip install -q graphite-web==1.1.10 whisper==1.1.10 pyparsing==2.4.7
	cd test/graphite-oracle && go vet . && go test -count=1 -timeout 60m . -python $(VENV)/bin/python
	go test -tags $(TAGS) -count=1 -v -run TestRollupsBesideWhisper ./internal/app -python $(VENV)/bin/python
	go build -o bin/test/shale ./cmd/shale
	$(VENV)/bin/python test/graphite-oracle/python/cluster.py bin/test/shale

# make oracle-carbon SEED=2 CASES=5000 makes other random cases of aggregation and of the relay.
CASES ?= 1000
oracle-carbon: SEED ?= 7
oracle-carbon: ## Compare rules, aggregates and the relay with carbon, which is installed for it; outside CI, which replays recorded answers.
	python3 -m venv $(VENV)
	GRAPHITE_NO_PREFIX=True $(VENV)/bin/pip install -q carbon==1.1.10 mmh3 protobuf==3.20.3
	$(VENV)/bin/python test/carbon-oracle/python/rules.py < internal/write/graphite/rules/testdata/cases.jsonl \
	  | diff - internal/write/graphite/rules/testdata/carbon.jsonl
	go test -count=1 ./internal/write/graphite/rules
	d=$$(mktemp -d) && trap 'rm -rf $$d' EXIT \
	  && $(VENV)/bin/python test/carbon-oracle/python/aggregation_cases.py 1 30 | diff - internal/write/graphite/pipeline/testdata/cases.jsonl \
	  && $(VENV)/bin/python test/carbon-oracle/python/aggregation_cases.py $(SEED) $(CASES) > $$d/cases \
	  && $(VENV)/bin/python test/carbon-oracle/python/aggregator.py < $$d/cases > $$d/answers \
	  && go test -count=1 -run TestAsCarbonAggregator ./internal/write/graphite/pipeline -cases $$d/cases -answers $$d/answers
	d=$$(mktemp -d) && trap 'rm -rf $$d' EXIT \
	  && $(VENV)/bin/python test/carbon-oracle/python/relay.py < internal/write/graphite/relay/testdata/cases.json | diff - internal/write/graphite/relay/testdata/carbon.json \
	  && $(VENV)/bin/python test/carbon-oracle/python/relay_cases.py 1 40 | diff - internal/write/graphite/route/testdata/cases.jsonl \
	  && $(VENV)/bin/python test/carbon-oracle/python/relay.py < internal/write/graphite/route/testdata/cases.jsonl | diff - internal/write/graphite/route/testdata/carbon.jsonl \
	  && $(VENV)/bin/python test/carbon-oracle/python/relay_cases.py $(SEED) $(CASES) > $$d/cases \
	  && $(VENV)/bin/python test/carbon-oracle/python/relay.py < $$d/cases > $$d/answers \
	  && go test -count=1 -run TestAsCarbonRelay ./internal/write/graphite/route -cases $$d/cases -answers $$d/answers
	$(VENV)/bin/pip install -q whisper==1.1.10
	go build -o bin/test/shale ./cmd/shale
	$(VENV)/bin/python test/carbon-oracle/python/relay_daemons.py $(VENV)/bin bin/test/shale
	go test -tags '$(TAGS),e2e' -count=1 -run TestCarbonRelay ./test/e2e -shale ../../bin/test/shale -carbon $(VENV)/bin

# make oracle-logql LOKI=<path> also compares the oracle of metric queries with a program of Loki, over HTTP.
QUERIES ?= 20000
oracle-logql: ## Compare LogQL and pushes with a real Loki built from test/; outside CI, which replays recorded responses.
	cd test/logql-oracle && go vet ./... && go test -count=1 . ./line
	cd test/logql-oracle && go test -count=1 -timeout 30m ./metric -queries '$(QUERIES)' $(if $(LOKI),-loki '$(LOKI)')
	cd test/logql-oracle/push && go vet ./... && go test -count=1 ./...
	cd test/logql-oracle/response && go vet ./... && go test -count=1 ./...

fuzz: ## Fuzz every target for FUZZTIME (5m).
	@.ci/fuzz $(FUZZTIME)

# make bench runs LOADS (a,b; by default all except the long ones) RUNS times for DURATION: against this tree, BASE (a commit),
# VICTORIA and PROMETHEUS (paths of binaries). BENCHFLAGS are further flags; go run ./bench run --help lists them.
RUNS     ?= 6
bench: ## Run named loads against this tree, BASE=<commit>, VICTORIA=<path>, PROMETHEUS=<path>; LOADS=a,b RUNS=6.
	go run ./bench run --runs '$(RUNS)' --duration '$(DURATION)' $(if $(LOADS),--loads '$(LOADS)') $(if $(BASE),--base '$(BASE)') \
	  $(if $(VICTORIA),--victoria '$(VICTORIA)') $(if $(PROMETHEUS),--prometheus '$(PROMETHEUS)') $(BENCHFLAGS)
	$(if $(BASE),go run ./bench compare "$$(ls -t bench-results/*.jsonl | head -n 1)")

bench-memory: ## Print the table of the peak of memory of queries, then that of 200 mixed clients; PROMETHEUS=<path>.
	go run ./bench memory $(if $(PROMETHEUS),--prometheus '$(PROMETHEUS)')
	go run ./bench mix

bench-report: ## Write the results of the last make bench into docs/benchmarks.md.
	go run ./bench report "$$(ls -t bench-results/*.jsonl | head -n 1)"

bench-micro: ## Run the benchmarks of all packages RUNS (6) times; with BASE=<commit>, compare with that commit by benchstat.
	go run ./bench micro --count '$(RUNS)' $(if $(BASE),--base '$(BASE)')

clean: ## Remove the built files. The data folder stays.
	rm -rf bin
