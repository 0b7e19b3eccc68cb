"""The lake that most tests need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from new_lakes import new_lake

import tableformat as tf


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[tf.Catalog]:
    """An empty lake of the test's own, with the namespace `db`."""
    with new_lake(tmp_path / "lake") as catalog:
        yield catalog
