"""Fixtures of the benchmarks."""

from __future__ import annotations

import os

import pytest
from measuring import heading, show
from nine_million_rows import NineMillionRows, benchmark_directory, nine_million_rows

# Tests run without the JVM's second compiler (tests/conftest.py); benchmarks use it, as users do.
os.environ.pop("JDK_JAVA_OPTIONS", None)


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> NineMillionRows:
    """Nine million rows, unpartitioned, sorted by (id1, id2, num_cal)."""
    written = nine_million_rows(benchmark_directory(tmp_path_factory.mktemp("bench")))
    heading("the table")
    for data in written.data_files:
        show(local_name(data.file_path), f"{data.record_count:>9,} rows {data.file_size_bytes:>10,} bytes")
    return written


def local_name(location: str) -> str:
    return location.rpartition("/")[2]
