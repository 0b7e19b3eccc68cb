"""The catalog that the commit tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from commit_tables import FaultyCatalog


@pytest.fixture
def catalog(tmp_path: Path) -> FaultyCatalog:
    catalog = FaultyCatalog.at(tmp_path / "lake")
    assert isinstance(catalog, FaultyCatalog)
    return catalog
