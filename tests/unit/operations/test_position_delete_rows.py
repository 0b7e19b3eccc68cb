"""`position_deletes`: row values that the writer stored in a position delete file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake
from pyiceberg.types import IntegerType

from tableformat.operations import position_delete_rows
from tableformat.operations.position_delete_rows import position_delete_files


def _field(name: str, arrow_type: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, arrow_type, metadata={"PARQUET:field_id": str(field_id)})


def test_stored_rows_of_position_deletes_are_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the current columns: one was renamed since, one was added, one was dropped."""
    with new_lake(tmp_path / "lake") as catalog:
        schema = pa.schema([("id", pa.int64()), ("was", pa.string()), ("gone", pa.string())])
        table = catalog.create_table("db.t", schema, properties={"write.delete.blind": "off"})
        table.append(pa.table({"id": [1, 2, 3], "was": ["a", "b", "c"], "gone": ["x"] * 3}, schema=schema))
        table.delete("id < 3")
        with table.update_schema() as change:
            change.rename_column("was", "now")
            change.delete_column("gone")
            change.add_column("came", IntegerType())
        (written,) = position_delete_files(table.view)
        assert table.inspect.position_deletes()["row"].to_pylist() == [None, None]
        data = table.inspect.files()["file_path"][0].as_py()
        row = pa.struct([_field("id", pa.int64(), 1), _field("was", pa.string(), 2), _field("gone", pa.string(), 3)])
        stored = pa.schema(
            [
                _field("file_path", pa.string(), 2147483546),
                _field("pos", pa.int64(), 2147483545),
                _field("row", row, 2147483544),
            ]
        )
        rows = [{"id": 2, "was": "b", "gone": "x"}, {"id": 1, "was": "a", "gone": "x"}]
        path = tmp_path / "kept.parquet"
        pq.write_table(pa.table([[data] * 2, [1, 0], pa.array(rows, row)], schema=stored), path)
        kept = replace(written, file_path=str(path), file_size_bytes=os.path.getsize(path))
        monkeypatch.setattr(position_delete_rows, "position_delete_files", lambda _: [kept])
        found = table.inspect.position_deletes()
    assert found["pos"].to_pylist() == [0, 1]
    assert found["row"].to_pylist() == [{"id": 1, "now": "a", "came": None}, {"id": 2, "now": "b", "came": None}]
    assert found["delete_file_path"].to_pylist() == [str(path)] * 2
