# make run    start hearth on a small model and the sample wiki
# make test   run the tests
# make help   all targets

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run ray install quick test check lint types eval bench bench-peers tune fmt lock wheel clean help

run: install ## install what is needed, get the small model, then start the gateway
	@$(BIN)/hearth pull || echo "Starting without it, on the built-in model."
	@$(BIN)/hearth start

# RAY="max_replicas=8 cpus=4": the arguments of deploy/ray/app.py.
RAY :=

ray: $(VENV)/.installed ## serve the model from a Ray cluster, started here unless RAY_ADDRESS names one
	@$(BIN)/python -m pip install -q 'ray[serve]>=2.60,<3'
	@$(BIN)/serve run deploy.ray.app:app $(RAY)

install: $(VENV)/.installed ## make .venv with everything that running needs

# Three test processes for two cores, because tests wait for a good part of their time; the tests of a file stay in one
# of them and in their order.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

quick: $(VENV)/.installed-dev ## run the tests that need no model: while working on the code
	@$(PYTEST) -m "not soak and not model"

test: $(VENV)/.installed-dev ## run the tests, the real model included
	@$(PYTEST) -m "not soak"

check: $(VENV)/.installed-dev lint types ## what continuous integration runs: format, lint, types, all tests
	@$(PYTEST)

lint: $(VENV)/.installed-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	@$(BIN)/mypy -p gateway -p model_host -p clients

fmt: $(VENV)/.installed-dev ## format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# A stopped run goes on where it was. LIMIT=40 asks that many questions of each set, MODELS=a.gguf evaluates that model too.
EVAL := build/eval
LIMIT :=
MODELS :=
asked = $(BIN)/hearth eval --model "$$model" $(LIMIT:%=--limit %) --out "$(EVAL)/$(1)-$$(basename "$$model" .gguf).json"

eval: $(VENV)/.installed-dev ## answers of the built-in model and SmolLM2 on both question sets: hours; needs dict-foldoc
	@$(BIN)/python eval/foldoc.py $(EVAL)/foldoc.xml
	@$(BIN)/hearth import-wiki $(EVAL)/foldoc.xml --data-dir $(EVAL)/foldoc --quiet
	@set -e; smollm2=$$($(BIN)/python models/weights.py smollm2); for model in hearth-demo "$$smollm2" $(MODELS); do \
		$(call asked,esolangs); $(call asked,foldoc) --set eval/foldoc.toml --data-dir $(EVAL)/foldoc; \
	done

bench: $(VENV)/.installed-dev ## measure what the gateway adds, and the memory of conversations: some minutes
	@mkdir -p models/build
	@$(BIN)/python models/random_gemma.py models/build/bench.gguf
	@$(BIN)/python benchmarks/gateway_overhead.py models/build/bench.gguf
	@$(BIN)/python benchmarks/memory_host.py

bench-peers: $(VENV)/.installed-dev ## beside llama-server and llama-cpp-python's server, built first: about an hour
	@mkdir -p build/peers
	@$(BIN)/python benchmarks/peers.py --out build/peers/results.json

# A stopped run goes on from its last checkpoint. An adapter is copied into the tree by hand, after `evaluate.py`. That of
# SmolLM2 in the tree: TUNE_BASE=smollm2 TUNE_MINUTES=7 TUNE_WITH="--device cuda --rows 8 --whole --rounded --rank 24 \
# --alpha 48 --rate 7e-4"
TUNE := build/tune
TUNE_BASE := $(if $(WIKI),standard,gemma-3-270m-hearth)
TUNE_MINUTES := 90
TUNE_WITH :=
# WIKI=path: a data directory with an imported wiki, a dump, or a folder of pages. Its adapter is for the model of `make run`.
WIKI :=
TUNE_NAME := $(if $(WIKI),$(firstword $(subst ., ,$(notdir $(abspath $(WIKI))))),best)
TUNE_RUN := $(TUNE)$(if $(WIKI),/$(TUNE_NAME))
examples = $(BIN)/python models/tuning/examples.py "$$(cat $(TUNE_RUN)/base)" $(if $(WIKI),--wiki "$(WIKI)")

tune: $(VENV)/.installed-dev ## train the adapter of a small model again, or one for your own WIKI=path, for TUNE_MINUTES=90
	@mkdir -p $(TUNE_RUN)
	$(BIN)/python models/weights.py $(TUNE_BASE) > $(TUNE_RUN)/base
	$(examples) $(TUNE_RUN)/trees.jsonl
	$(examples) $(TUNE_RUN)/held_out.jsonl --epochs 1 --held-out
	@$(PYTHON) -m venv $(TUNE)/venv
	@$(TUNE)/venv/bin/python -m pip install -q torch==2.13.0 numpy gguf
	$(TUNE)/venv/bin/python models/tuning/tune.py "$$(cat $(TUNE_RUN)/base)" $(TUNE_RUN)/trees.jsonl \
		$(TUNE_RUN)/held_out.jsonl --run $(TUNE_RUN)/run --name $(TUNE_NAME) --minutes $(TUNE_MINUTES) --compile $(TUNE_WITH)
	@$(if $(WIKI),echo 'Use it: model.adapters = ["$(abspath $(TUNE_RUN)/run/$(TUNE_NAME).gguf)"] and ask for the model $(TUNE_NAME)',:)

wheel: $(VENV)/.installed-dev ## build dist/hearth-*.whl
	@$(BIN)/python -m hatchling build -t wheel

# Universal locks: one file holds for every Python from 3.11 on. They carry the package index's own hashes and
# no address, so that a mirror serves as well. The tool lives outside .venv: the locks do not depend on it.
UV := build/lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-emit-index-url \
	--custom-compile-command "make lock"

# What tests/end_to_end/clients/test_packages.py installs. npm's list of them needs node.
CLIENTS := tests/end_to_end/clients/packages

lock: ## pin the newest allowed versions of all dependencies
	@$(PYTHON) -m venv build/lock
	@build/lock/bin/python -m pip install -q uv
	@$(UV) --generate-hashes --extra build --extra irc -o requirements.lock pyproject.toml
	@$(UV) --generate-hashes --extra dev -c requirements.lock -o requirements-dev.lock pyproject.toml
	@$(UV) --generate-hashes -o $(CLIENTS)/requirements.lock $(CLIENTS)/requirements.in
	@rm -f $(CLIENTS)/package-lock.json
	@cd $(CLIENTS) && npm install --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund
	@$(UV) -o deploy/build-constraints.txt deploy/build-requirements.in

clean: ## remove the virtual environment and everything built
	rm -rf $(VENV) dist build models/build .mypy_cache .ruff_cache .pytest_cache .hypothesis

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

INSTALLER := deploy/install.py deploy/amx_tiles.h deploy/llama_options.cmake deploy/build-constraints.txt pyproject.toml

$(VENV)/.installed: requirements.lock $(INSTALLER)
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is missing: apt install python3 python3-venv"; exit 1; }
	@$(PYTHON) deploy/install.py --venv $(VENV) --lock requirements.lock
	@touch $@

$(VENV)/.installed-dev: requirements-dev.lock requirements.lock $(INSTALLER)
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is missing: apt install python3 python3-venv"; exit 1; }
	@$(PYTHON) deploy/install.py --venv $(VENV) --lock requirements-dev.lock
	@touch $@ $(VENV)/.installed
