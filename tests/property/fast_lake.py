"""A lake for tests that commit thousands of times."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tableformat as tf

MEMORY = Path("/dev/shm")


@contextmanager
def fast_lake() -> Iterator[tf.Catalog]:
    """A catalog with the namespace `db`, in memory if the system has a file system for that; removed afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="lake-", dir=MEMORY if MEMORY.is_dir() else None) as directory,
        tf.open_catalog(f"{directory}/lake") as catalog,
    ):
        catalog.create_namespace("db")
        yield catalog
