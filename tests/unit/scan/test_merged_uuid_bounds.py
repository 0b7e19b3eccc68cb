"""A data file whose uuid bounds another writer merged in signed order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.table.snapshots import Operation

from tableformat.commit.change import TableChange
from tableformat.commit.transaction import commit_change
from tableformat.metadata.content_file import DataFile
from tableformat.testing.table_files import live_data_files

SCHEMA = pa.schema([pa.field("id", pa.uuid(), nullable=False), ("n", pa.int64())])
FIRST_BYTES = [0x10, 0x60, 0x90, 0xA0, 0xB0]


def uuid_of(first_byte: int) -> UUID:
    return UUID(bytes=bytes([first_byte]) + bytes(15))


def with_merged_bounds(data: DataFile, lower: int, upper: int) -> DataFile:
    """The same rows under another name, described as two row groups would be."""
    path = Path(data.file_path.removeprefix("file://"))
    copy = path.with_name(f"merged-{path.name}")
    copy.write_bytes(path.read_bytes())
    bounds = {"lower_bounds": {1: uuid_of(lower).bytes}, "upper_bounds": {1: uuid_of(upper).bytes}}
    changes = {"file_path": f"file://{copy}", "sequence_number": None, "split_offsets": (4, 400), **bounds}
    return replace(data, **changes)


@pytest.mark.parametrize("stated", [(0xA0, 0xB0), (0x90, 0x60), (0x10, 0x60)])
@pytest.mark.parametrize("deleted", [(0x00, 0x50), (0x80, 0xFF), (0x60, 0xA0), (0x95, 0xA5)])
def test_range_delete_with_signed_uuid_bounds(
    tmp_path: Path, stated: tuple[int, int], deleted: tuple[int, int]
) -> None:
    """RD-10: a file is neither passed over nor left out by bounds above some of its rows."""
    with new_lake(tmp_path / "lake") as catalog:
        table, source = (catalog.create_table(f"db.{name}", SCHEMA, key=["id"]) for name in ("t", "source"))
        ids = pa.ExtensionArray.from_storage(
            pa.uuid(), pa.array([uuid_of(each).bytes for each in FIRST_BYTES], pa.binary(16))
        )
        source.append(pa.table({"id": ids, "n": FIRST_BYTES}, schema=SCHEMA))
        (data,) = live_data_files(source)
        change = TableChange(operation=Operation.APPEND, added_data_files=(with_merged_bounds(data, *stated),))
        commit_change(table.iceberg, change)
        table.refresh()
        table.delete_range(lower=(uuid_of(deleted[0]),), upper=(uuid_of(deleted[1]),))
        alive = sorted(table.scan().to_arrow()["n"].to_pylist())
        assert alive == [each for each in FIRST_BYTES if not deleted[0] <= each < deleted[1]]
