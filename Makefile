# hermesd needs Go and make, nothing else. `make help` lists the targets.

GO      ?= go
BIN     := bin
PLUGINS := files hello weather
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
# Further flags for `go test`, for example TESTFLAGS=-race.
TESTFLAGS ?=

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build hermesd and its plugins into bin/
	@mkdir -p $(BIN)/plugins
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/hermesd ./cmd/hermesd
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(BIN)/hermesd-shim ./cmd/hermesd-shim
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(BIN)/plugins/ ./plugins/... ./examples/plugins/...

.PHONY: run
run: build ## build, then start the daemon on config.hcl.example
	$(BIN)/hermesd serve --config config.hcl.example

.PHONY: test
test: ## run the whole test suite
	$(GO) test $(TESTFLAGS) ./...
	$(GO) -C tools test ./...

.PHONY: lint
lint: ## formatting, vet, staticcheck
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not formatted (run gofmt -w):"; echo "$$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) tool -modfile=tools/go.mod staticcheck ./...

.PHONY: sdk
sdk: ## pack the module into dist/sdk, a proxy to build plugins against before it is published
	@$(GO) run ./internal/sdkproxy -out dist/sdk

.PHONY: generate
generate: ## make the generated files again
	$(GO) generate ./...

.PHONY: bench
bench: ## calls, side by side with what they are compared with
	$(GO) test -run '^$$' -bench . -benchtime 2s ./runtime/daemon ./internal/bench/...

# Tests with bars in time, which hold where the machine is left alone: bounds of stopping, and what a SIGKILL takes.
TIMED := StopIsBounded|MendedWithinASecond|ACancelReaches|AStoppedProcess|TheGroupGoes|TheShimCatches|Outlives|AKilledProvider
.PHONY: bars
bars: ## every measured bar beside what it is compared with; fails if one is missed (minutes, on a machine left alone)
	@status=0; \
	$(GO) run ./internal/bench/checkbars || status=1; \
	HERMESD_QUIET=1 $(GO) test -count=1 -p 1 -run '$(TIMED)' ./runtime/pluginhost ./internal/procgroup ./internal/integration || status=1; \
	exit $$status

.PHONY: bench-search
bench-search: ## search quality and speed (set HERMESD_EVAL_DATA to the folder of the evaluation data)
	$(GO) run ./search/searchtest/benchsearch

.PHONY: soak
soak: ## the long runs: 1,000 start and stop cycles, kills at random moments
	HERMESD_SOAK=1 HERMESD_KILL_ROUNDS=50 $(GO) test -timeout 60m -run 'Soak|Kill|Leak|Chaos|StopIsBounded|Outlives|FromOutside' ./...

FUZZTIME ?= 20s
.PHONY: fuzz
fuzz: ## every fuzz test for FUZZTIME each
	@for package in $$($(GO) list ./...); do \
	  for name in $$($(GO) test -list '^Fuzz' $$package 2>/dev/null | grep '^Fuzz'); do \
	    echo "== $$package $$name"; $(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
	  done; \
	done

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BIN)
