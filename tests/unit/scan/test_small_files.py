"""Small files that are read together: the contents of a batch, and errors about one file of many."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from maintenance_tables import commit_deletes
from new_lakes import new_lake
from pyiceberg.expressions import AlwaysTrue, GreaterThanOrEqual
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, StringType
from resolve_tables import data_file, metadata_of, with_ids, write

from tableformat.errors import CorruptFileError
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.merge_on_read.task import FileScanTask
from tableformat.parquet.parquet_file import OpenedFile
from tableformat.parquet.projection import select_columns
from tableformat.scan.context import ReadContext
from tableformat.scan.reader import read_tables
from tableformat.testing.raw_files import foreign_equality_delete
from tableformat.write.context import WriteContext

SCHEMA = Schema(NestedField(1, "n", IntegerType()), NestedField(2, "note", StringType()), schema_id=0)


def context_of(columns: list[str] | None = None) -> ReadContext:
    merge = MergeContext(metadata_of(SCHEMA), PyArrowFileIO())
    return ReadContext(merge, SCHEMA, select_columns(SCHEMA, columns))


def task_of(tmp_path: Path, name: str, numbers: pa.Array, **fields: object) -> FileScanTask:
    notes = pa.array([name] * len(numbers))
    path = write(tmp_path / f"{name}.parquet", with_ids(pa.table({"n": numbers, "note": notes}), [1, 2]))
    return FileScanTask(data_file=data_file(path), **fields)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The files that are decoded, and of how many columns."""
    found: list[tuple[str, int]] = []
    read = OpenedFile.read_whole
    monkeypatch.setattr(
        OpenedFile,
        "read_whole",
        lambda self, leaves: found.append((Path(self.location).stem, len(leaves))) or read(self, leaves),
    )
    return found


def test_conversion_error_names_the_file_of_the_batch(tmp_path: Path) -> None:
    """DA-8: values are converted for all files of one schema together."""
    numbers = {"first": [1], "second": [2**40], "third": [3]}
    tasks = [task_of(tmp_path, name, pa.array(values, pa.int64())) for name, values in numbers.items()]
    with pytest.raises(CorruptFileError, match=r"second\.parquet: column 'n'"):
        list(read_tables(tasks, context_of()))
    fitting = list(read_tables([tasks[0], tasks[2]], context_of()))
    assert [rows.to_pydict() for rows in fitting] == [{"n": [1, 3], "note": ["first", "third"]}]


def test_files_with_different_schemas_and_filters_are_combined(tmp_path: Path, decoded: list[tuple[str, int]]) -> None:
    narrow, wide = pa.int32(), pa.int64()
    where = GreaterThanOrEqual("n", 2)
    tasks = [
        task_of(tmp_path, "a", pa.array([1, 2], narrow), residual=AlwaysTrue()),
        task_of(tmp_path, "b", pa.array([1, 2], wide), residual=where),
        task_of(tmp_path, "c", pa.array([0, 1], narrow), residual=where),
        task_of(tmp_path, "d", pa.array([3], narrow), residual=where),
    ]
    tables = list(read_tables(tasks, context_of(["note"])))
    assert [rows.to_pydict() for rows in tables] == [{"note": ["a", "a", "b", "d"]}]
    assert decoded == [("a", 2), ("b", 2), ("d", 2)], "statistics rule file c out"


def test_rows_without_columns_are_counted(tmp_path: Path) -> None:
    tasks = [task_of(tmp_path, name, pa.array([1, 2], kind)) for name, kind in (("a", pa.int32()), ("b", pa.int64()))]
    assert sum(rows.num_rows for rows in read_tables(tasks, context_of([]), narrow=False)) == 4


@pytest.mark.parametrize("columns", [None, ["id"], ["s"]])
def test_delete_by_dropped_struct_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: list[str] | None
) -> None:
    """DA-6: the field is read to find the rows, and is not part of the struct that is returned."""
    catalog = new_lake(tmp_path / "lake")
    struct = pa.struct([("x", pa.string()), ("y", pa.int64())])
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("s", struct)]))
    for start in (0, 2):
        numbers = [start, start + 1]
        values = pa.array([{"x": f"x{number}", "y": number} for number in numbers], struct)
        table.append(pa.table({"id": numbers, "s": values}))
    context = WriteContext.of(table.metadata, table.iceberg.io)
    gone = [{"s": {"x": f"x{number}", "y": None}} for number in (1, 2)]
    schema = table.metadata.schema()
    commit_deletes(table, foreign_equality_delete(context, gone, schema, equality_columns=["s.x"], spec_id=0))
    with table.iceberg.update_schema() as update:
        update.delete_column(("s", "x"))
    rows = table.refresh().scan(columns=columns).to_arrow().to_pylist()
    expected = [{"id": number, "s": {"y": number}} for number in (3, 0)]
    assert rows == [{name: row[name] for name in columns or row} for row in expected]
    with table.iceberg.update_schema() as update:
        update.add_column(("s", "z"), LongType())
    with table.iceberg.update_schema() as update:
        update.delete_column(("s", "y"))
    rows = table.refresh().scan(columns=columns).to_arrow().to_pylist()
    expected = [{"id": number, "s": {"z": None}} for number in (3, 0)]
    assert rows == [{name: row[name] for name in columns or row} for row in expected]
