# Every target sets up what it needs in .venv (plain venv and pip), so each works on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check

.PHONY: help setup browser demo test slow models training fuzz check format bench simulate docs clean
help:  ## what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("forgetmap needs python >= 3.11; set PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[dev]'
	@touch $@

$(VENV)/.models: $(VENV)/.installed
	$(PIP) 'torch==2.13.0'  # pinned first: where a CPU wheel is at hand, pip takes that one
	$(PIP) -e '.[eval,ray,suites,train]' tensorboard
	@touch $@

$(VENV)/.spark: $(VENV)/.installed
	$(PIP) -e '.[spark]'
	@touch $@

setup: $(VENV)/.installed  ## create .venv with everything the other targets need

browser:  ## chromium for the tests of the report, by apt where that can be done
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq chromium >/dev/null 2>&1; } || echo "no chromium and no way to install it: the browser tests are skipped"

demo: setup  ## map forgetting in the bundled real example
	$(BIN)/forgetmap demo --out demo-output

test: setup browser  ## the whole default test suite
	$(BIN)/pytest -n 2

slow: setup $(VENV)/.spark  ## the tests that take minutes
	$(BIN)/pytest -n 2 -m 'slow and not model'

models: $(VENV)/.models  ## the tests that run or train language models (torch, transformers, TRL, lm-eval)
	$(BIN)/pytest -m 'model and not slow'

training: $(VENV)/.models  ## the tests that train models for minutes: do the remedies help?
	$(BIN)/pytest -m 'model and slow'

fuzz: setup  ## hunt for logs that break a reader: thousands of malformed ones
	FORGETMAP_FUZZ_CASES=1000 $(BIN)/pytest -n 2 tests/readers/test_fuzz.py tests/readers/test_fuzz_readers.py

check: setup  ## ruff, mypy, and imports that point downward only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup  ## let ruff fix and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## measure beside the peers; writes benchmarks/results.md
	$(BIN)/python benchmarks/run.py

simulate: setup  ## coverage of the intervals, false alarms of the gate; writes docs/explanation/coverage.md
	$(BIN)/python benchmarks/simulate.py
	$(BIN)/python benchmarks/gate_simulation.py

docs: setup  ## regenerate the command line reference and the pictures of the README
	$(BIN)/python docs/make_docs.py

clean:  ## remove what the targets made
	rm -rf $(VENV) demo-output
