# Everything a contributor needs. All targets set up what they use; only Python 3.11+ and make are assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= 2

.PHONY: help setup pythons demo test properties bench lint clean

help:
	@echo "make setup  install into .venv; then run .venv/bin/holokube"
	@echo "make pythons  install into .venv-3.12 and so on, for every other Python version found; tests then compare them"
	@echo "make demo   half a day of a cluster under three autoscalers, compared; writes demo-report.html"
	@echo "make test   all tests (builds a real control plane once, if Go is installed)"
	@echo "make properties  the property tests, with new random examples each time (ROUNDS=3)"
	@echo "make bench  benchmarks, as ratios to the real programs"
	@echo "make lint   ruff, mypy --strict, import-linter, forbidden calls"
	@echo "make clean  remove what the other targets created"

setup: $(STAMP)

$(STAMP): pyproject.toml tools/dev-requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "holokube needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r tools/dev-requirements.txt -e '.[cel,dask,grpc,optimal]'
	@touch $@

pythons: setup
	@$(BIN)/python tools/pythons/other_pythons.py

demo: setup
	@$(BIN)/holokube run examples/quick-start/scenario.yaml --report demo-report.html
	@echo "The report is in demo-report.html: open it in a browser." >&2

test: setup
	@$(BIN)/python -m holokube.testing.controlplane build || [ -z "$$HOLOKUBE_REQUIRE_REAL" ]
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(PYTEST_FLAGS)

# Properties of examples nobody has drawn before, ROUNDS times.
ROUNDS ?= 3
properties: setup
	for round in $$(seq $(ROUNDS)); do \
	  $(BIN)/python -m pytest -q -m hypothesis -n $(WORKERS) --dist loadgroup --hypothesis-seed=random || exit 1; \
	done

bench: setup
	@$(BIN)/python -m benchmarks

lint: setup
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/lint/forbidden_calls.py
	$(BIN)/python tools/docs/cli_reference.py --check
	$(BIN)/python tools/docs/scenario_reference.py --check

clean:
	rm -rf $(VENV) $(VENV)-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build demo-report.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
