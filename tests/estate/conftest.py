"""One Spark session for all estate tests, and the outcomes that were recorded with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from matrix import Matrix, write_if_complete
from servers import jars

from spark_ext import configure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SEEN: Final = Matrix()


@pytest.fixture(scope="session")
def matrix() -> Matrix:
    """TABLEFORMAT_ESTATE_MATRIX names the file that it is written to."""
    return SEEN


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    target = os.environ.get("TABLEFORMAT_ESTATE_MATRIX")
    if target:
        write_if_complete(SEEN, Path(target), session, int(exitstatus))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with a lake, with which the other catalogs are compared, and with S3A, for which the session sets no
    options (LK-15)."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(map(str, jars("spark-s3"))))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "OFF")
    )
    session = configure(builder, catalog="lake", warehouse=tmp_path_factory.mktemp("lake")).getOrCreate()
    yield session
    session.stop()
