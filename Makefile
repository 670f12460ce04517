# make run    start hearth on the built-in model and the sample wiki
# make test   run the tests
# make help   all targets

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run install test check bench fmt lint types lock wheel clean help

run: install ## install what is needed, then start the gateway
	@$(BIN)/hearth start

install: $(VENV)/.installed ## make .venv with everything that running needs

test: $(VENV)/.installed-dev ## run the tests, the real model included
	@$(BIN)/python -m pytest -m "not soak"

check: $(VENV)/.installed-dev lint types ## what continuous integration runs: format, lint, types, all tests
	@$(BIN)/python -m pytest

lint: $(VENV)/.installed-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	@$(BIN)/mypy -p gateway -p model_host

fmt: $(VENV)/.installed-dev ## format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.installed-dev ## measure what the gateway adds to a request
	@mkdir -p models/build
	@$(BIN)/python models/random_gemma.py models/build/bench.gguf
	@$(BIN)/python benchmarks/gateway_overhead.py models/build/bench.gguf

wheel: $(VENV)/.installed-dev ## build dist/hearth-*.whl
	@$(BIN)/python -m pip wheel -q --no-deps --no-build-isolation -w dist .

lock: $(VENV)/.installed-dev ## pin the newest allowed versions of all dependencies
	@$(BIN)/pip-compile $(LOCK_FLAGS) -o requirements.lock pyproject.toml
	@$(BIN)/pip-compile $(LOCK_FLAGS) --extra dev -o requirements-dev.lock pyproject.toml

LOCK_FLAGS := -q --upgrade --generate-hashes --allow-unsafe --strip-extras --no-header \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links

clean: ## remove the virtual environment and everything built
	rm -rf $(VENV) dist build models/build .mypy_cache .ruff_cache .pytest_cache .hypothesis

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(VENV)/.installed: requirements.lock pyproject.toml deploy/install.py
	@$(PYTHON) deploy/install.py --venv $(VENV) --lock requirements.lock
	@touch $@

$(VENV)/.installed-dev: requirements-dev.lock pyproject.toml deploy/install.py
	@$(PYTHON) deploy/install.py --venv $(VENV) --lock requirements-dev.lock
	@touch $@ $(VENV)/.installed
