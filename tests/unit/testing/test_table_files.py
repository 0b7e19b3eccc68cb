"""Live files, and files that exist on disk."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from new_lakes import new_lake

from tableformat.testing.table_files import files_on_disk, live_data_files, live_delete_files, live_files

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


def test_live_files_are_those_of_the_handles_snapshot(tmp_path: Path) -> None:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", SCHEMA, key=["id"])
    assert live_files(table) == []
    table.append(pa.table({"id": [1, 2]}, schema=SCHEMA))
    (data,) = live_data_files(table)
    earlier = catalog.load_table("db.t")
    table.delete("id = 1", mode="equality")
    (delete,) = live_delete_files(table)
    assert (data.record_count, delete.equality_ids) == (2, (1,))
    assert {file.file_path for file in live_files(table)} == {data.file_path, delete.file_path}
    assert live_files(earlier) == [data]
    orphan = f"{table.location}/data/orphan.parquet"
    Path(orphan.removeprefix("file://")).write_bytes(b"PAR1")
    assert {path for path in files_on_disk(table) if path.endswith(".parquet")} == {
        data.file_path,
        delete.file_path,
        orphan,
    }
