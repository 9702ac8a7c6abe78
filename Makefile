# make demo | make test | make bench: each sets up what it needs in $(VENV) first.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
SHELL := /bin/bash

.PHONY: help setup lint test demo bench clean

help:
	@echo "make demo   the whole thing on a virtual robot, with pictures in demo_output/"
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

demo: setup
	$(BIN)/python -m lerobot_tool_bridge demo

bench: setup
	$(BIN)/python -m bench $(ARGS)

clean:
	rm -rf $(VENV) build install log
