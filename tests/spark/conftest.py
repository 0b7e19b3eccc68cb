"""One Spark session for all tests of this directory, because starting a session takes seconds."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import older_spark_versions
import pytest

from spark_ext import configure
from tableformat import Catalog, open_catalog
from tableformat.demo.java_runtime import INSTALL_HINT, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOR_FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Generating and compiling code for each statement is not worth the time for a few rows. Tests of types and of random
statements use it (`generated_code`), as do sessions in their own processes; `make test-long` uses it for all tests."""
OF_USERS = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}
_HERE = Path(__file__).parent
_SPARK = tuple(int(part) for part in version("pyspark").split(".")[:2])
_numbers = count()
_LEFT_OPEN = "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
"""PySpark before 4.2 leaves its sockets to the garbage collector."""
_OLD_VERSIONS = "ignore:distutils Version classes are deprecated:DeprecationWarning"
"""PySpark before 4.0 compares versions of packages by them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            _skip_what_spark_lacks(item)
            if _SPARK < (4, 2):
                item.add_marker(pytest.mark.filterwarnings(_LEFT_OPEN))
            if _SPARK < (4, 0):
                item.add_marker(pytest.mark.filterwarnings(_OLD_VERSIONS))


def _skip_what_spark_lacks(item: pytest.Item) -> None:
    """`@pytest.mark.since_spark("4.2", "CHANGES")`: the feature that the test needs, and the first Spark version that
    has it.

    `before_spark` marks tests of the message or error in versions without the feature.
    """
    for mark in item.iter_markers("since_spark"):
        first, what = mark.args
        if _version(first) > _SPARK:
            item.add_marker(pytest.mark.skip(reason=f"Spark {first} and newer: {what}"))
    for mark in item.iter_markers("before_spark"):
        first, what = mark.args
        if _version(first) <= _SPARK:
            item.add_marker(pytest.mark.skip(reason=f"older than Spark {first}, where {what}"))


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


if _SPARK < (4, 1):
    older_spark_versions.say_keys_by_property()
if _SPARK < (4, 0):
    older_spark_versions.name_conditions_of_errors()
    older_spark_versions.take_and_give_arrow_tables()


@pytest.fixture(scope="session")
def java() -> None:
    """Skips if Spark cannot run; in CI that is a failure."""
    if find_java() is None:
        if os.environ.get("CI"):
            pytest.fail(INSTALL_HINT)
        pytest.skip(INSTALL_HINT)


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory whose name contains every kind of character that is allowed."""
    return tmp_path_factory.mktemp("spark") / "ware house é"


@pytest.fixture(scope="session")
def spark(java: None, warehouse: Path) -> Iterator[SparkSession]:
    """A session with the catalog `lake`."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("tableformat tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.ui.explainMode", "simple")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(warehouse.parent / "spark-warehouse"))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "OFF")
    )
    if os.environ.get("HYPOTHESIS_PROFILE") != "soak":
        for name, value in FOR_FEW_ROWS.items():
            builder = builder.config(name, value)
    if _SPARK < (4, 0):
        # This is the default of later versions.
        builder = builder.config("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")
    session = configure(builder, catalog="lake", warehouse=warehouse).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def lake(warehouse: Path) -> Iterator[Catalog]:
    """The same catalog from Python."""
    with open_catalog(str(warehouse)) as catalog:
        yield catalog


@pytest.fixture
def generated_code(spark: SparkSession) -> Iterator[None]:
    """Statements run as they do for users, in code that is made for them."""
    before = {name: spark.conf.get(name) for name in FOR_FEW_ROWS}
    for name, value in OF_USERS.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.fixture
def namespace(lake: Catalog) -> str:
    """A namespace of the test's own."""
    name = f"db{next(_numbers)}"
    lake.create_namespace(name)
    return name
