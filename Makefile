# Every target sets up what it needs: `make demo` and `make check` work on a fresh clone.
# Needs Python 3.11 or newer and make; Java 17 or newer for the Spark parts.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# DuckDB's own Iceberg extension wants the DuckDB version it was built for, so it lives apart.
ORACLE := .venv-duckdb-iceberg
LOWEST := .venv-lowest
# Processes for the tests. One of them has the Spark session and all tests of that; tests/conftest.py deals out the
# others. Benchmarks mean nothing in several processes, and their plugin says so with a warning.
WORKERS ?= auto
# Tests start many processes of Python: none of them shall compile the modules anew.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := -m pytest -p no:benchmark --numprocesses $(WORKERS) --dist loadscope --no-loadscope-reorder

.PHONY: help setup demo check test test-long test-memory test-unit test-lowest test-python test-wheel lint format dist \
	bench soak clean

help:
	@echo "make setup        .venv with the library, every extra and the tools"
	@echo "make demo         the main job: replace rows of messages in a stream, query, travel back, convert"
	@echo "make check        lint and test: what a change has to pass"
	@echo "make test         the tests"
	@echo "make lint         ruff, mypy --strict, import-linter"
	@echo "make test-lowest  tests/unit with the lowest versions of the dependencies (Python 3.11)"
	@echo "make test-python  tests/unit with another Python: make test-python PYTHON=python3.13"
	@echo "make test-wheel   the wheel in an empty environment, its dependencies from the package registry"
	@echo "make dist         sdist and wheel for a release, in dist/"
	@echo "make bench        the benchmarks, as ratios"
	@echo "make soak         the long forms of the harness for SOAK_MINUTES (30)"
	@echo "make test-long    every test in its long form: thousands of examples, whole matrices; hours"

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Python 3.11 or newer is needed, this is ' + sys.version)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(ORACLE)/.ready: $(VENV)/.ready tests/integration/duckdb_iceberg_env.py
	$(BIN)/python tests/integration/duckdb_iceberg_env.py
	@touch $@

$(LOWEST)/.ready: pyproject.toml constraints-lowest.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info[:2] != (3, 11) and 'constraints-lowest.txt is for Python 3.11, this is ' + sys.version)"
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-lowest.txt --editable '.[dev]'
	@touch $@

demo: setup
	$(BIN)/tableformat demo

check: lint test

# Bounds on memory are measured in the allocator of the system, which memray sees into.
test: setup $(ORACLE)/.ready
	ARROW_DEFAULT_MEMORY_POOL=system $(BIN)/python $(PYTEST)

test-memory: setup
	ARROW_DEFAULT_MEMORY_POOL=system $(BIN)/python -m pytest tests/memory

test-unit: setup
	$(BIN)/python $(PYTEST) tests/unit

# Old releases of some dependencies use what newer ones of theirs call deprecated.
test-lowest: $(LOWEST)/.ready
	$(LOWEST)/bin/python $(PYTEST) tests/unit -W default::DeprecationWarning

test-python:
	$(MAKE) test-unit PYTHON=$(PYTHON) VENV=.venv-$(notdir $(PYTHON))

test-wheel: setup
	TABLEFORMAT_WHEEL_DEPENDENCIES=registry $(BIN)/python -m pytest tests/integration/test_wheel.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

dist: setup
	TABLEFORMAT_REQUIRE_JAR=1 $(BIN)/python -m build --no-isolation

bench: setup $(ORACLE)/.ready
	$(BIN)/python -m pytest tests/benchmarks --benchmark-disable-gc -s

soak: setup
	$(BIN)/python tests/soak/run_soak.py

test-long: setup $(ORACLE)/.ready
	HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest tests/property
	HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest tests/spark
	HYPOTHESIS_PROFILE=soak ARROW_DEFAULT_MEMORY_POOL=system $(BIN)/python -m pytest \
		tests/memory tests/unit tests/integration tests/conformance tests/golden -m long

clean:
	rm -rf $(VENV) .venv-* build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis demo-lake
