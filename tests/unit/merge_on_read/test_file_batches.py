"""Small files that are resolved together: how they are grouped, and which files are opened and matched for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, StructType
from resolve_tables import context_of, data_file, delete_file, with_ids, write

from tableformat.deletes.codecs.position_rows import FILE_PATH_FIELD_ID, POSITION_FIELD_ID
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.spans import SpanArray, span_of_bounds, spans_of_prefixes
from tableformat.errors import CorruptFileError
from tableformat.keys.key_columns import KeyColumns
from tableformat.merge_on_read.deleted_positions import deleted_positions
from tableformat.merge_on_read.small_files import joint_positions
from tableformat.merge_on_read.small_files.batches import BATCH_ROWS, SMALL_FILE_BYTES, batched
from tableformat.merge_on_read.small_files.joint_positions import deleted_positions_of
from tableformat.merge_on_read.small_files.key_rows import joined, parted, starts_of
from tableformat.merge_on_read.task import FileScanTask, NarrowedTask, only_rows
from tableformat.metadata.content_file import PARQUET, DataFile

SCHEMA = Schema(NestedField(1, "id", StringType(), required=True), NestedField(2, "n", LongType()), schema_id=0)
KEY = KeyColumns.of(SCHEMA, (1, 2))


def written(tmp_path: Path, name: str, ids: list[str], *, is_sorted: bool = True, first: int = 0) -> Path:
    table = pa.table({"id": ids, "n": range(first, first + len(ids))})
    return write(tmp_path / f"{name}.parquet", with_ids(table, [1, 2]), sorted_by=(1, 2) if is_sorted else None)


def prefixes(*ids: str) -> SpanArray:
    return spans_of_prefixes(KEY, pa.table({"id": list(ids)}))


def positions(tasks: list[FileScanTask], context=None) -> list[list[int]]:
    found = deleted_positions_of(tasks, context or context_of(SCHEMA))
    return [each.to_array().tolist() for each in found]


def task_of(*, size_bytes: int = 1000, row_count: int = 10, **fields: object) -> FileScanTask:
    data = DataFile(
        file_path="nowhere.parquet",
        file_format=PARQUET,
        spec_id=0,
        record_count=row_count,
        file_size_bytes=size_bytes,
        sequence_number=1,
    )
    return FileScanTask(data_file=data, **fields)


def test_consecutive_small_files_form_a_batch() -> None:
    small, large = task_of(), task_of(size_bytes=SMALL_FILE_BYTES + 1)
    long = task_of(row_count=BATCH_ROWS + 1)
    narrowed, chosen = NarrowedTask(scan=small, constants={1: "insert"}), only_rows(small, PositionSet.every(2))
    over_budget = task_of(range_delete_files=(delete_file(Path(__file__)),))
    tasks = [small, small, large, small, chosen, narrowed, long, over_budget]
    assert list(batched(tasks)) == [(small, small), large, (small, chosen), narrowed, long, over_budget]


def test_batch_is_limited_by_rows_and_bytes() -> None:
    half = task_of(row_count=BATCH_ROWS // 2)
    assert [len(batch) for batch in batched([half] * 5)] == [2, 2, 1]
    heavy = task_of(size_bytes=SMALL_FILE_BYTES)
    assert [len(batch) for batch in batched([heavy] * 6)] == [4, 2]


def test_positions_beyond_a_file_do_not_affect_the_next_file() -> None:
    """A position delete may name rows that the file never had."""
    starts = starts_of([3, 2, 4])
    sets = [PositionSet.from_array(np.array(each)) for each in ([1, 3, 4], [0], [3, 9])]
    together = joined(sets, starts)
    assert together.to_array().tolist() == [1, 3, 8]
    assert [each.to_array().tolist() for each in parted(together, starts)] == [[1], [0], [3]]


def test_spans_apply_only_to_their_own_file(tmp_path: Path) -> None:
    """RD-1: open-ended spans end with the rows of their file; RD-11: for any order of rows."""
    in_order = data_file(written(tmp_path, "in_order", ["a", "b", "b", "c"]))
    mixed = data_file(written(tmp_path, "mixed", ["c", "a", "b"], is_sorted=False))
    tasks = [
        FileScanTask(data_file=in_order, range_deletes=(span_of_bounds(KEY, ("b", 2), None),)),
        FileScanTask(data_file=mixed, range_deletes=(prefixes("c"),)),
        FileScanTask(data_file=in_order, range_deletes=(span_of_bounds(KEY, None, ("b",)),)),
        FileScanTask(data_file=mixed),
        FileScanTask(data_file=mixed, range_deletes=(prefixes("a"), prefixes("a", "b"))),
    ]
    assert positions(tasks) == [[2, 3], [0], [0], [], [1, 2]]


def test_file_is_not_reopened_while_positions_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    read = joint_positions.MergeContext.read_data_file
    monkeypatch.setattr(
        joint_positions.MergeContext,
        "read_data_file",
        lambda self, file: opened.append(Path(file.file_path).stem) or read(self, file),
    )
    first, second = (data_file(written(tmp_path, name, ["a", "b"])) for name in ("first", "second"))
    tasks = [
        FileScanTask(data_file=first, range_deletes=(prefixes("a"),)),
        FileScanTask(data_file=second, range_deletes=(prefixes("b"),)),
    ]
    context = context_of(SCHEMA)
    assert positions(tasks, context) == positions(tasks, context) == [[0], [1]]
    assert opened == ["first", "second"]
    assert deleted_positions(tasks[0], context).to_array().tolist() == [0]
    another = FileScanTask(data_file=second, range_deletes=(prefixes("a"),))
    assert positions([tasks[0], another], context) == [[0], [0]]
    assert opened == ["first", "second", "second"]


def test_merged_equality_keys_apply_only_to_older_files(tmp_path: Path) -> None:
    """DA-2: deletes are merged, and each of them applies only to strictly older files."""
    data = [
        data_file(written(tmp_path, f"data{number}", ["a", "b", "c"]), sequence_number=number) for number in (1, 2, 3)
    ]
    deletes = [
        delete_file(
            write(tmp_path / f"deletes{number}.parquet", with_ids(pa.table({"id": ids}), [1])),
            equality_ids=(1,),
            sequence_number=number,
        )
        for number, ids in ((2, ["a"]), (3, ["a", "b"]))
    ]
    tasks = [
        FileScanTask(
            data_file=each,
            equality_deletes=tuple(delete for delete in deletes if delete.sequence_number > each.sequence_number),
        )
        for each in data
    ]
    assert positions(tasks) == [[0, 1], [0, 1], []]


def test_struct_field_key_and_missing_column(tmp_path: Path) -> None:
    """DA-6: what the file does not have is null in every row."""
    inner = StructType(NestedField(2, "n", LongType()), NestedField(3, "m", LongType()))
    schema = Schema(NestedField(1, "s", inner), NestedField(4, "added", LongType()), schema_id=0)
    key = KeyColumns((2, 4), ("s.n", "added"), (LongType(), LongType()))
    struct = pa.struct([pa.field("n", pa.int64(), metadata={b"PARQUET:field_id": b"2"})])
    fields = pa.schema([pa.field("s", struct, metadata={b"PARQUET:field_id": b"1"})])
    path = write(tmp_path / "nested.parquet", pa.table({"s": [{"n": 5}, None, {"n": 6}]}, schema=fields))
    spans = spans_of_prefixes(key, pa.table({"s.n": [6, None], "added": pa.array([None, None], pa.int64())}))
    task = FileScanTask(data_file=data_file(path), range_deletes=(spans,))
    assert positions([task, task], context_of(schema)) == [[1, 2], [1, 2]]


def test_position_and_value_deletes_combine(tmp_path: Path) -> None:
    """DA-1"""
    path = written(tmp_path, "data", ["a", "b", "c", "d"])
    rows = pa.table({"file_path": [str(path)] * 2, "pos": pa.array([3, 0], pa.int64())})
    named = write(tmp_path / "positions.parquet", with_ids(rows, [FILE_PATH_FIELD_ID, POSITION_FIELD_ID]))
    by_name = FileScanTask(data_file=data_file(path), position_deletes=(delete_file(named, record_count=2),))
    both = FileScanTask(
        data_file=data_file(path),
        position_deletes=(delete_file(named, record_count=2),),
        range_deletes=(prefixes("b"),),
    )
    assert positions([by_name, both]) == [[0, 3], [0, 1, 3]]


def test_unreadable_file_in_batch_is_named(tmp_path: Path) -> None:
    """DA-8"""
    good = data_file(written(tmp_path, "good", ["a"]))
    path = written(tmp_path, "bad", ["a"])
    bad = data_file(path)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    tasks = [FileScanTask(data_file=each, range_deletes=(prefixes("a"),)) for each in (good, bad)]
    with pytest.raises(CorruptFileError, match=r"bad\.parquet"):
        positions(tasks)
