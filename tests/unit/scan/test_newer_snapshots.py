"""Snapshots, tags and branches that are newer than the handle are found; if they do not exist, an error is raised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake

from tableformat.errors import SnapshotNotFoundError


def test_handle_finds_newer_snapshots_tags_and_branches(tmp_path: Path) -> None:
    catalog = new_lake(tmp_path / "lake")
    handle = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    handle.append(pa.table({"id": [1]}))
    loaded = handle.snapshot_id
    other = catalog.load_table("db.t")
    other.append(pa.table({"id": [2]}))
    newer = other.snapshot_id
    other.create_tag("two")
    other.create_branch("work")
    states: tuple[dict[str, Any], ...] = ({"snapshot_id": newer}, {"tag": "two"}, {"branch": "work"})
    for state in states:
        assert handle.scan(**state).count() == 2
    assert handle.changes(from_snapshot_id=loaded, to_snapshot_id=newer).to_arrow()["id"].to_pylist() == [2]
    assert (handle.snapshot_id, handle.scan().count()) == (loaded, 1)
    for state in ({"snapshot_id": 7}, {"tag": "none"}, {"branch": "none"}):
        with pytest.raises(SnapshotNotFoundError):
            handle.scan(**state)
