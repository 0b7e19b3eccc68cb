# Every target sets up what it needs: `make demo` and `make check` work on a fresh clone.
# Needs Python 3.11 or newer and make; Java 17 or newer for the Spark parts.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# DuckDB's own Iceberg extension wants the DuckDB version it was built for, so it lives apart.
ORACLE := .venv-duckdb-iceberg
RUST := .venv-iceberg-rust
CLICKHOUSE := .venv-clickhouse
DBT := .venv-dbt
TOOLS := .venv-tools
AIRFLOW := .venv-airflow
ICEBERG_SPARK := .venv-iceberg-spark
ICEBERG_SPARK_JAR := iceberg-spark-runtime-4.0_2.13:1.11.0
LOWEST := .venv-lowest
# The versions of Spark that the catalog is for, hatch_build.py's SPARKS; each is a download of some 400 MB.
SPARKS := 3.5 4.0 4.1 4.2 4.3
SPARK ?= 3.5
SPARK_VENV := .venv-spark-$(SPARK)
FLINK := .venv-flink
FUZZ := .venv-fuzz
BENCH := .venv-bench
BENCH_MINUTES ?= 60
# Workloads of the report to measure anew, such as "growth planning"; all without it.
BENCH_ONLY ?=
# Processes for the tests. Two of them have Spark sessions and all tests of these; tests/conftest.py deals out the
# others. There is one more than cores, because many tests wait: for a process, a stream or a server. Benchmarks mean
# nothing in several processes, and their plugin says so with a warning.
WORKERS ?= $(shell expr $$(nproc 2>/dev/null || sysctl -n hw.ncpu) + 1)
# Tests start many processes of Python: none of them shall compile the modules anew.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := -m pytest -p no:benchmark --numprocesses $(WORKERS) --dist loadscope --no-loadscope-reorder

.PHONY: help setup demo check test test-clickhouse test-dbt test-tools test-airflow test-served test-all test-long test-memory test-unit test-lowest test-python test-wheel test-estate test-iceberg-suite test-rest-suite mutate lint format dist \
	jars test-spark test-cluster smoke-spark bench bench-report soak soak-story fuzz corpus foreign-tables site docs clean

help:
	@echo "make setup        .venv with the library, every extra and the tools"
	@echo "make demo         the main job: replace rows of messages in a stream, query, travel back, convert"
	@echo "make check        lint, site and test-all: what a change has to pass"
	@echo "make test         the tests without the slow ones, of Spark those of each mechanism: minutes, while you work"
	@echo "make test-all     all of them"
	@echo "make lint         ruff, mypy --strict, import-linter"
	@echo "make test-lowest  tests/unit with the lowest versions of the dependencies (Python 3.11)"
	@echo "make test-python  tests/unit with another Python: make test-python PYTHON=python3.13"
	@echo "make test-estate  every verb, job and statement of Spark on catalogs of each kind, and a stream of Flink: docs/reference/estate.md; needs Maven and Java"
	@echo "make test-clickhouse  what ClickHouse makes of tables with range deletes; 530 MB"
	@echo "make test-served  Spark, DuckDB and Trino on the server's tables; 1.5 GB, needs Maven; Trino needs TRINO_JAVA_HOME"
	@echo "make test-dbt     the dbt project of the guide on the Spark catalog; 500 MB"
	@echo "make test-tools   the page of the guide about Ibis, Daft, Ray, dlt and Dagster; 1.2 GB"
	@echo "make test-airflow  the DAG of the guide; 730 MB"
	@echo "make test-iceberg-suite  Iceberg's compiled tests of its Spark catalog on ours, Spark 4.1; needs Maven and a JDK; an hour"
	@echo "make test-rest-suite  Iceberg's compiled tests of catalogs on tableformat serve; needs Maven and a JDK; two minutes"
	@echo "make test-wheel   the wheel in an empty environment, its dependencies from the package registry"
	@echo "make jars         the catalog's jar for each version of Spark, in build/jars"
	@echo "make test-spark   tests/spark on another Spark: make test-spark SPARK=3.5; smoke-spark runs one test of seconds"
	@echo "make test-cluster  a standalone Spark cluster on loopback, with executors that are killed; three minutes"
	@echo "make dist         sdist and wheel for a release, in dist/"
	@echo "make bench        the benchmarks, as ratios"
	@echo "make bench-report ours beside other formats, as a page with plots: docs/benchmarks.md, BENCH_MINUTES=60; needs Maven"
	@echo "make fuzz         the readers with changed bytes, led by coverage (atheris), FUZZ_SECONDS each"
	@echo "make mutate       would a test notice? each place of MODULES changed, TESTS run over it: CONTRIBUTING.md"
	@echo "make soak         the long forms of the harness for SOAK_MINUTES (30)"
	@echo "make soak-story   two streams that are killed, jobs and a consumer on one table, for SOAK_MINUTES (30)"
	@echo "make site         the guide in build/site; ten seconds"
	@echo "make docs         the same, and every block of the guide is run"
	@echo "make corpus       what other readers make of specs/corpus, measured anew: docs/reference/reader-matrix.md"
	@echo "make foreign-tables  tests/foreign/tables, written again by Iceberg's Java library; needs Maven and a JDK"
	@echo "make test-long    every test in its long form: thousands of examples, whole matrices; hours"

setup: $(VENV)/.ready

# Python compiles a module when it is first imported. Most modules of these packages never are, and pip would take a minute for them.
$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Python 3.11 or newer is needed, this is ' + sys.version)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(ORACLE)/.ready: $(VENV)/.ready tests/integration/duckdb_iceberg_env.py
	$(BIN)/python tests/integration/duckdb_iceberg_env.py
	@touch $@

$(LOWEST)/.ready: pyproject.toml constraints-lowest.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info[:2] != (3, 11) and 'constraints-lowest.txt is for Python 3.11, this is ' + sys.version)"
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-lowest.txt --editable '.[dev]'
	@touch $@

# Java processes of the tests start with it; it is made once, and not where there is no Java.
$(VENV)/.spark-classes: $(VENV)/.ready tests/spark/class_archive.py
	$(BIN)/python tests/spark/class_archive.py $(VENV)/spark-classes.jsa
	@touch $@

demo: setup
	$(BIN)/tableformat demo

check: lint site test-all

# Bounds on memory are measured in the allocator of the system, which memray sees into.
test: setup $(ORACLE)/.ready $(VENV)/.spark-classes
	TABLEFORMAT_MAKE_TEST=1 ARROW_DEFAULT_MEMORY_POOL=system $(BIN)/python $(PYTEST)

test-all: setup $(ORACLE)/.ready $(VENV)/.spark-classes
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

# Real catalogs, stores and a stream on loopback; jars are fetched once, by Maven. Tests whose reader is not there are skipped;
# where all have passed, what was seen is written into the guide.
test-estate: setup $(ORACLE)/.ready $(FLINK)/.ready .estate/flink/.ready .estate/rest-server/.ready .estate/hive-metastore/.ready .estate/spark-s3/.ready
	TABLEFORMAT_ESTATE_MATRIX=docs/reference/estate.md $(BIN)/python -m pytest -p no:benchmark tests/estate

# Its dependencies are others than those of this library, 800 MB of them. The version is one that Iceberg's runtime is made for.
$(FLINK)/.ready: tests/estate/flink/pom.xml
	$(PYTHON) -m venv $(FLINK)
	$(FLINK)/bin/python -m pip install --quiet --disable-pip-version-check 'apache-flink==2.1.*'
	@touch $@

.estate/flink/.ready: tests/estate/flink/pom.xml
.estate/rest-server/.ready: tests/estate/rest_server/pom.xml
.estate/hive-metastore/.ready: tests/estate/hive_metastore/pom.xml
.estate/spark-s3/.ready: tests/estate/spark_s3/pom.xml
.estate/flink/.ready .estate/rest-server/.ready .estate/hive-metastore/.ready .estate/spark-s3/.ready:
	rm -rf $(@D)
	mvn --quiet --batch-mode --file $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)
	@touch $@

test-clickhouse: setup $(CLICKHOUSE)/.ready
	$(BIN)/python -m pytest -p no:benchmark tests/integration/test_gate_clickhouse.py

# Engines of their own, connected to the server.
test-served: setup $(ORACLE)/.ready $(ICEBERG_SPARK)/.ready $(FLINK)/.ready .estate/flink/.ready .venv-trino/.ready build/trino/.ready
	PYTHONPATH=tests/unit:tests/served $(BIN)/python -m pytest -p no:benchmark tests/served

test-dbt: setup $(DBT)/.ready
	$(BIN)/python -m pytest -p no:benchmark tests/integration/test_dbt.py

# dbt-core 1.12 downloads a part of its own that is in no package registry.
$(DBT)/.ready: Makefile
	$(PYTHON) -m venv $(DBT)
	$(DBT)/bin/python -m pip install --quiet --disable-pip-version-check 'dbt-core==1.11.*' 'dbt-spark==1.11.*' 'pyspark==4.3.*'
	@touch $@

test-tools: setup $(TOOLS)/.ready
	$(BIN)/python -m pytest -p no:benchmark tests/integration/test_tools.py

$(TOOLS)/.ready: pyproject.toml Makefile
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --editable . \
		'ibis-framework[duckdb]==12.*' 'daft==0.7.*' 'ray[data]==2.60.*' 'dlt[parquet]==1.31.*' 'dagster==1.13.*'
	@touch $@

test-airflow: setup $(AIRFLOW)/.ready
	$(BIN)/python -m pytest -p no:benchmark tests/integration/test_airflow.py

$(AIRFLOW)/.ready: pyproject.toml Makefile
	$(PYTHON) -m venv $(AIRFLOW)
	$(AIRFLOW)/bin/python -m pip install --quiet --disable-pip-version-check --editable . 'apache-airflow==3.*'
	@touch $@

# Iceberg's tests are jars of its own, and some of its classes are ours there: tests/iceberg_suite/run_suite.py says which.
test-iceberg-suite: setup .spark-4.1/.ready build/iceberg-suite/jars/.ready
	$(BIN)/python tests/iceberg_suite/run_suite.py $(CLASSES)

build/iceberg-suite/jars/.ready: tests/iceberg_suite/pom.xml
	mvn --quiet --batch-mode --file $< dependency:copy-dependencies -DexcludeTransitive=true -DoutputDirectory=$(CURDIR)/$(@D)
	@touch $@

test-rest-suite: setup build/rest-suite/jars/.ready
	$(BIN)/python tests/rest_suite/run_rest_suite.py $(CLASSES)

build/rest-suite/jars/.ready: tests/rest_suite/pom.xml
	mvn --quiet --batch-mode --file $< dependency:copy-dependencies -DexcludeTransitive=true -DoutputDirectory=$(CURDIR)/$(@D)
	@touch $@

test-wheel: setup
	TABLEFORMAT_WHEEL_DEPENDENCIES=registry $(BIN)/python -m pytest tests/integration/test_wheel.py

mutate: $(VENV)/.mutmut
	$(BIN)/python tests/mutation/run_mutants.py --tests $(TESTS) -- $(MODULES)

$(VENV)/.mutmut: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'mutmut>=3.8,<4'
	@touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Only the jars of each pyspark are wanted, and nothing that it depends on.
.spark-%/.ready:
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(@D) 'pyspark==$*.*'
	@touch $@

jars: setup $(SPARKS:%=.spark-%/.ready)
	rm -rf build/jars
	$(BIN)/python spark_ext/jar.py build/jars $(SPARKS:%=.spark-%/pyspark/jars)

$(SPARK_VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(SPARK_VENV)
	grep -v -e '^pyspark' -e '^py4j' constraints.txt > $(SPARK_VENV)/constraints.txt
	$(SPARK_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint $(SPARK_VENV)/constraints.txt --editable '.[tools]' 'pyspark==$(SPARK).*' \
		grpcio grpcio-status googleapis-common-protos zstandard
	@touch $@

test-spark: $(SPARK_VENV)/.ready
	$(SPARK_VENV)/bin/python -m pytest -p no:benchmark tests/spark

test-cluster: setup $(VENV)/.spark-classes
	PYTHONPATH=tests/cluster $(BIN)/python -m pytest -p no:benchmark tests/cluster

smoke-spark: $(SPARK_VENV)/.ready
	$(SPARK_VENV)/bin/python -m pytest -p no:benchmark tests/spark/test_spark_smoke.py

dist: setup jars
	TABLEFORMAT_JARS=build/jars $(BIN)/python -m build --no-isolation

bench: setup $(ORACLE)/.ready
	$(BIN)/python -m pytest tests/benchmarks --benchmark-disable-gc -s

# Iceberg and Delta are made for this Spark; 450 MB.
$(BENCH)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(BENCH)
	grep -v -e '^pyspark' -e '^py4j' constraints.txt > $(BENCH)/constraints.txt
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint $(BENCH)/constraints.txt --editable '.[bench]' 'pyspark==4.1.*'
	@touch $@

build/bench-jars/.ready: Makefile
	mvn --quiet --batch-mode dependency:copy -Dartifact=org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0 \
		-DoutputDirectory=$(CURDIR)/$(@D)/iceberg
	for artifact in delta-spark_4.1_2.13:4.1.0 delta-storage:4.1.0; do \
		mvn --quiet --batch-mode dependency:copy -Dartifact=io.delta:$$artifact -DoutputDirectory=$(CURDIR)/$(@D)/delta || exit 1; \
	done
	@touch $@

# DuckLake is in $(ORACLE). Ingest to 10,000 commits is BENCH_ONLY=growth BENCH_MINUTES=240.
bench-report: $(BENCH)/.ready $(ORACLE)/.ready build/bench-jars/.ready
	PYTHONPATH=tests/benchmarks TABLEFORMAT_BENCH_JARS=$(CURDIR)/build/bench-jars \
		$(BENCH)/bin/python -m report.run --minutes $(BENCH_MINUTES) $(BENCH_ONLY:%=--only %) --output docs

# What was measured is reproducible with these versions.
$(RUST)/.ready: Makefile
	$(PYTHON) -m venv $(RUST)
	$(RUST)/bin/python -m pip install --quiet --disable-pip-version-check 'pyiceberg-core==0.11.0' 'datafusion==54.*' 'pyarrow==26.0.1'
	@touch $@

build/corpus-java/.ready: tableformat/corpus/readers/pom.xml
	mvn --quiet --batch-mode --file $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)
	@touch $@

# Iceberg's runtime is made for this Spark; 450 MB.
$(ICEBERG_SPARK)/.ready: Makefile
	$(PYTHON) -m venv $(ICEBERG_SPARK)
	$(ICEBERG_SPARK)/bin/python -m pip install --quiet --disable-pip-version-check 'pyspark==4.0.*'
	mvn --quiet --batch-mode dependency:copy -Dartifact=org.apache.iceberg:$(ICEBERG_SPARK_JAR) -DoutputDirectory=$(CURDIR)/build/corpus-spark
	@touch $@

# Readers that are only measured here. Where one cannot be had, the reason is on standard error and the others go on.
MORE_READERS := .venv-clickhouse/.ready .venv-sail/.ready .venv-polars-iceberg/.ready build/iceberg-go build/trino/.ready .venv-trino/.ready
TRINO := 476
# Trino 476 needs Java 24 or newer, and the other readers an older one: make corpus TRINO_JAVA_HOME=...
TRINO_JAVA_HOME ?= $(JAVA_HOME)
export TRINO_JAVA_HOME

.venv-clickhouse/.ready: PACKAGES = 'chdb==4.*' 'pyarrow==26.0.1'
.venv-sail/.ready: PACKAGES = 'pysail==0.7.*' 'pyspark-client==4.1.*' pandas 'pyarrow==26.0.1'
.venv-polars-iceberg/.ready: PACKAGES = 'polars==2.1.*' 'polars_iceberg==0.1.*' 'pyiceberg[pyarrow]==0.12.*'
.venv-trino/.ready: PACKAGES = 'trino==0.*'
.venv-clickhouse/.ready .venv-sail/.ready .venv-polars-iceberg/.ready .venv-trino/.ready: Makefile
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(PACKAGES)
	@touch $@

build/iceberg-go: $(wildcard tableformat/corpus/readers/iceberg_go/*)
	cd tableformat/corpus/readers/iceberg_go && CGO_ENABLED=0 go build -o $(CURDIR)/$@ .

# Of the plugins, a gigabyte unpacked, one is enough.
build/trino/.ready: Makefile
	rm -rf $(@D)
	mvn --quiet --batch-mode dependency:copy -Dartifact=io.trino:trino-server:$(TRINO):tar.gz -DoutputDirectory=$(CURDIR)/$(@D)
	tar xzf $(@D)/trino-server-$(TRINO).tar.gz -C $(@D) --strip-components=1
	rm $(@D)/trino-server-$(TRINO).tar.gz
	find $(@D)/plugin -mindepth 1 -maxdepth 1 ! -name iceberg -exec rm -r {} +
	@touch $@

# A wrong cell ends the command with status 1: that is what is measured. Where a process crashes, another gets the rest.
corpus: setup $(ORACLE)/.ready $(RUST)/.ready $(ICEBERG_SPARK)/.ready $(FLINK)/.ready .estate/flink/.ready build/corpus-java/.ready
	-$(MAKE) --keep-going $(MORE_READERS)
	$(BIN)/tableformat corpus check --markdown --leave-out-missing --tables-per-process 250 --reader tableformat --reader pyiceberg --reader polars \
		--reader 'duckdb=$(ORACLE)/bin/python {readers}/read_tables.py duckdb' \
		--reader 'iceberg-rust=$(RUST)/bin/python {readers}/read_tables.py pyiceberg-core' \
		--reader 'iceberg-java=java -cp build/corpus-java/* {readers}/ReadTables.java' \
		--reader 'iceberg-spark=env ICEBERG_SPARK_JAR=build/corpus-spark/$(subst :,-,$(ICEBERG_SPARK_JAR)).jar $(ICEBERG_SPARK)/bin/python {readers}/read_tables.py spark' \
		--reader 'flink=env HADOOP_CLASSPATH=.estate/flink/* FLINK_LOG_DIR=build $(FLINK)/bin/python {readers}/read_tables.py flink' \
		--reader 'sail=.venv-sail/bin/python {readers}/read_tables.py sail' \
		--reader 'iceberg-go=env ICEBERG_GO=build/iceberg-go .venv-clickhouse/bin/python {readers}/read_tables.py iceberg-go' \
		--reader 'trino=env TRINO_HOME=build/trino .venv-trino/bin/python {readers}/read_tables.py trino' \
		--reader 'clickhouse=.venv-clickhouse/bin/python {readers}/read_tables.py chdb' \
		--reader 'polars-iceberg=env POLARS_ICEBERG_PLANNER=plugin .venv-polars-iceberg/bin/python {readers}/read_tables.py polars' \
		> docs/reference/reader-matrix.md.tmp || [ -s docs/reference/reader-matrix.md.tmp ]
	mv docs/reference/reader-matrix.md.tmp docs/reference/reader-matrix.md

# The tables state the directory where they are written. The directory is removed, because a reader would find the tables there.
FOREIGN := /tmp/foreign-tables

foreign-tables: build/corpus-java/.ready
	rm -rf $(FOREIGN) build/foreign-classes
	mkdir -p $(FOREIGN)
	javac -cp 'build/corpus-java/*' -d build/foreign-classes tableformat/corpus/readers/ReadTables.java tests/foreign/*.java
	cd $(FOREIGN) && java -ea -cp '$(CURDIR)/build/corpus-java/*:$(CURDIR)/build/foreign-classes' WriteTables
	find $(FOREIGN) -name '.*.crc' -delete
	rm -rf tests/foreign/tables
	mv $(FOREIGN) tests/foreign/tables

# A warning of the build is an error. Links and anchors are checked; no block of a page runs.
site: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Every block of every page runs.
docs: site
	HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -p no:benchmark tests/unit/test_docs_pages.py \
		tests/spark/test_docs_spark.py

# What the guide shows, after it looks otherwise than before; Chromium takes the pictures.
screenshots: setup
	$(BIN)/python docs/pictures/screenshots.py

notebooks: setup
	$(BIN)/python docs/notebooks/store_outputs.py

soak: setup
	$(BIN)/python tests/soak/run_soak.py

soak-story: setup
	$(BIN)/python tests/soak/run_soak.py story

test-long: setup $(ORACLE)/.ready
	HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest tests/property
	HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest tests/spark
	HYPOTHESIS_PROFILE=soak ARROW_DEFAULT_MEMORY_POOL=system $(BIN)/python -m pytest \
		tests/memory tests/unit tests/integration tests/conformance tests/golden -m long

$(FUZZ)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(FUZZ)
	$(FUZZ)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[testing]' 'atheris>=3,<4' pytest
	@touch $@

fuzz: $(FUZZ)/.ready
	$(FUZZ)/bin/python tests/fuzz/fuzz_readers.py

clean:
	rm -rf $(VENV) .venv-* .spark-* .estate build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis demo-lake
