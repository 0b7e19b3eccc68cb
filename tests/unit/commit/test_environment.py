"""Entries of a snapshot summary that describe the program that wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake

from tableformat.commit.environment import set_environment


@pytest.fixture(autouse=True)
def nothing_said() -> Iterator[None]:
    yield
    set_environment({})


def test_environment_is_in_every_summary_and_may_be_overridden(tmp_path: Path) -> None:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    rows = pa.table({"id": [1]})
    table.append(rows)
    set_environment({"app-id": "app-7"})
    table.append(rows)
    table.append(rows, snapshot_properties={"app-id": "mine"})
    table.maintenance.compact(rewrite_all=True)
    said = [dict(summary).get("app-id") for summary in table.inspect.snapshots()["summary"].to_pylist()]
    assert said == [None, "app-7", "mine", "app-7"]
