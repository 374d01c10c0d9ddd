# A bare machine needs Python 3.11 or later and this file: every target makes what it needs in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -q --disable-pip-version-check install -c constraints.txt
WORKERS ?= 2
N ?= 1000
SEED ?= 0

.PHONY: demo test lint bench acceptance fuzz links clean

demo: $(VENV)/.base
	$(BIN)/python examples/demo.py

test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS)

lint: $(VENV)/.lint links
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/check_imports.py
	$(BIN)/python scripts/check_packages.py
	$(BIN)/python scripts/check_sizes.py
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(VENV)/.test
	$(BIN)/python benchmarks/run.py

acceptance: $(VENV)/.test
	$(BIN)/python scripts/acceptance.py

fuzz: $(VENV)/.test
	$(BIN)/python tests/fuzz/fuzz.py $(N) $(SEED)

links:
	@$(PYTHON) scripts/make_links.py

clean:
	rm -rf $(VENV) .links build *.egg-info

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.base: $(VENV)/.made constraints.txt pyproject.toml
	$(PIP) -e .
	@touch $@

$(VENV)/.test: $(VENV)/.base
	$(PIP) -e '.[test]'
	@touch $@

$(VENV)/.lint: $(VENV)/.test
	$(PIP) -e '.[lint]'
	@touch $@
