# Every target sets up what it needs: `make demo` and `make test` work on a fresh clone.
# Needs Python 3.11 or newer and make; Java 17 or newer for the Spark parts.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# DuckDB's own Iceberg extension wants the DuckDB version it was built for, so it lives apart.
ORACLE := .venv-duckdb-iceberg

.PHONY: help setup demo test lint format bench soak clean

help:
	@echo "make setup   .venv with the library, every extra and the tools"
	@echo "make demo    the main job: replace rows of messages in a stream, query, travel back, convert"
	@echo "make test    the tests"
	@echo "make lint    ruff, mypy --strict, import-linter"
	@echo "make bench   the benchmarks, as ratios"
	@echo "make soak    the model test with many more examples"

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Python 3.11 or newer is needed, this is ' + sys.version)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(ORACLE)/.ready: $(VENV)/.ready tests/integration/duckdb_iceberg_env.py
	$(BIN)/python tests/integration/duckdb_iceberg_env.py
	@touch $@

demo: setup
	$(BIN)/tableformat demo

test: setup $(ORACLE)/.ready
	$(BIN)/python -m pytest
	ARROW_DEFAULT_MEMORY_POOL=system $(BIN)/python -m pytest tests/memory

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup $(ORACLE)/.ready
	$(BIN)/python -m pytest tests/benchmarks --benchmark-disable-gc -s

soak: setup
	HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest tests/property

clean:
	rm -rf $(VENV) $(ORACLE) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis demo-lake
