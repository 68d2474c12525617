# What a newcomer can do here; the targets build their own virtual environment.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DEMO   ?= l3-activation-hooks
JOBS   ?= auto
STAMP  := $(VENV)/.installed
RUN_STAMP := $(VENV)/.installed-runtime

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench fuzz mutants clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(RUN_STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(RUN_STAMP)

demo: $(RUN_STAMP) ## Approve a sample plan with a fresh key pair and print its playbook
	@PATH="$(CURDIR)/$(BIN):$$PATH" examples/run.sh $(DEMO)

test: $(STAMP) ## Run every test
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

lint: $(STAMP) ## Check format, lint rules and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(STAMP) ## Format the code and apply safe lint fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP) ## Measure start-up, scale and memory
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tests/bench.py

fuzz: $(STAMP) ## Try odd inputs on everything that reads what others wrote, for FUZZ_SECONDS=60
	@PYTHONPATH=tests $(BIN)/python tests/fuzz/fuzzing.py

mutants: $(STAMP) ## Mutate the code that gates, signs and names; a mutant no test notices must be argued
	@$(BIN)/python tests/check_mutants.py $(MUTANTS)

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) fuzz-failures mutants .pytest_cache .mypy_cache .ruff_cache .hypothesis
