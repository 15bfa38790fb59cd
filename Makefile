# Every target sets up what it needs in .venv (plain venv and pip), so each works on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help setup demo test slow check format bench simulate docs clean
help:  ## what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("forgetmap needs python >= 3.11; set PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev,bench]'
	@touch $@

setup: $(VENV)/.installed  ## create .venv with everything the other targets need

demo: setup  ## map forgetting in the bundled real example
	$(BIN)/forgetmap demo --out demo-output

test: setup  ## the whole default test suite
	$(BIN)/pytest -n 2

slow: setup  ## the tests that take minutes
	$(BIN)/pytest -n 2 -m slow

check: setup  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup  ## let ruff fix and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## measure beside the peers; writes benchmarks/results.md
	$(BIN)/python benchmarks/run.py

simulate: setup  ## coverage of the intervals, false alarms of the gate; writes docs/explanation/coverage.md
	$(BIN)/python benchmarks/simulate.py

docs: setup  ## regenerate the command line reference and the picture of the README
	$(BIN)/python docs/make_docs.py

clean:  ## remove what the targets made
	rm -rf $(VENV) demo-output
