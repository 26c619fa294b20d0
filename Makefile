# `make help` lists what can be asked for. Everything is made once and works again without a network.

BIN := .venv/bin
READY := .venv/ready
K8S := .cache/kubernetes
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)
LOCKS := requirements-build.lock requirements.lock requirements-dev.lock
# Passed on to the command, as in: make test ARGS="-k window"
ARGS ?=

# How often `make chaos` kills a process.
KILLS ?= 200

# Test files run side by side, each in one process from its first test to its last, in the order of tests/order.py.
# Arguments that come later win: make test ARGS="--numprocesses 0".
SIDE_BY_SIDE := --numprocesses auto --dist loadfile --no-loadscope-reorder

export PYTHON
# A test starts dozens of Python processes, and without its bytecode each would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-unit k8s-test k8s-tools k8s-image lint format docs bench chaos compare audit lock chart clean
.DEFAULT_GOAL := help

help: ## Show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 14

setup: $(READY) ## Make the virtual environment and fetch the Java archives

$(READY): $(LOCKS) pyproject.toml scripts/setup service/archives/spark.toml service/archives/kafka.toml \
    $(wildcard service/spark/java/tailrace/*/*.java)
	@scripts/setup

demo: setup ## Run an example pipeline against a local Kafka until Ctrl-C
	@$(BIN)/tailrace demo $(ARGS)

test: setup ## Run every test but those of chaos and of a cluster; starts what it needs
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) $(ARGS)

test-unit: setup ## Run the tests that need neither Kafka nor a JVM
	@$(BIN)/python -m pytest -m "not e2e and not kubernetes" $(SIDE_BY_SIDE) $(ARGS)

k8s-test: setup ## Install the chart on a real cluster, break what can break (Linux, root; tests/kubernetes)
	@tests/kubernetes/prerequisites
	@$(MAKE) --no-print-directory --jobs 2 k8s-tools k8s-image
	@$(AS_ROOT) tests/kubernetes/machine $(BIN)/python -m pytest -m kubernetes $(or $(ARGS),tests/kubernetes)

k8s-tools: $(K8S)/tools/ready ## Build the programs of the test cluster

$(K8S)/tools/ready: tests/kubernetes/build-tools $(shell find tests/kubernetes/tools -type f)
	@tests/kubernetes/build-tools $(abspath $(@D))

k8s-image: ## Build the image without a Docker engine
	@$(AS_ROOT) tests/kubernetes/build-image $(abspath $(K8S))/image

lint: setup ## Check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: setup ## Put the code into the form that lint asks for
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: setup ## Rewrite the parts of the documents that are made from the code
	@$(BIN)/python -m tests.docs.made

bench: setup ## Measure against Flink SQL and native Spark (an hour; see bench/)
	@$(BIN)/python -m bench $(ARGS)

chaos: setup ## Kill everything 200 times in the middle of a stream, compare the results; set clocks; run 10,000 batches
	@TAILRACE_TEST_KILLS=$(KILLS) TAILRACE_TEST_BATCHES=10000 \
		$(BIN)/python -m pytest -m "not kubernetes" tests/chaos tests/spark/test_flat_memory.py --timeout 0 $(ARGS)

compare: setup ## Run the golden pipelines and generated queries on Flink too, and compare
	@$(BIN)/python -m bench.compare $(ARGS)

audit: setup ## Ask for known vulnerabilities of all Python packages and Java archives (needs a network)
	@$(BIN)/python -m scripts.audit $(ARGS)

lock: setup ## Resolve requirements*.in again: make lock ARGS="--upgrade"
	@for name in requirements-build requirements requirements-dev; do \
		UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile $$name.in --output-file $$name.lock \
			--universal --python-version 3.11 --generate-hashes --quiet $(ARGS) || exit 1; \
	done

chart: setup ## Write what is made in charts/tailrace (README's tables, schema, dashboards), and k8s/ from it
	@$(BIN)/python -m scripts.chart_docs
	@$(BIN)/python -m monitoring
	@$(BIN)/python -m scripts.plain_manifests

clean: ## Remove everything that was made here
	@rm -rf .venv .cache build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
