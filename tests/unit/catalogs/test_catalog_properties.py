"""Properties of a catalog that apply to its new tables (SP-65)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake

from tableformat.errors import InvalidArgumentError

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


def test_table_default_and_override_precedence(tmp_path: Path) -> None:
    options = {
        "table-default.format-version": "3",
        "table-default.write.parquet.compression-codec": "snappy",
        "table-default.owner": "nobody",
        "table-override.write.delete.mode": "copy-on-write",
    }
    catalog = new_lake(tmp_path / "lake", **options)
    table = catalog.create_table("db.t", SCHEMA, properties={"owner": "me", "write.delete.mode": "merge-on-read"})
    assert table.metadata.format_version == 3
    found = table.properties
    assert (found["write.parquet.compression-codec"], found["owner"]) == ("snappy", "me")
    assert found["write.delete.mode"] == "copy-on-write"
    table.append(pa.table({"id": [1, 2]}, schema=SCHEMA))
    table.delete("id = 1")
    assert table.scan().to_arrow()["id"].to_pylist() == [2]


def test_invalid_table_default_is_rejected_at_create_table(tmp_path: Path) -> None:
    catalog = new_lake(tmp_path / "lake", **{"table-default.write.delete.mode": "sideways"})
    with pytest.raises(InvalidArgumentError, match="sideways"):
        catalog.create_table("db.t", SCHEMA)
    assert catalog.list_tables("db") == []
