"""Small files that are read together give the same rows as each file alone, in the same order."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from example_counts import examples
from fast_lake import fast_lake
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyiceberg.types import LongType, PrimitiveType
from test_equality_property import VALUES, columns_of
from test_resolve_property import Rows, context_of, table_of

import tableformat as tf
from tableformat.deletes.rules import committed_sequence_number
from tableformat.deletes.spans.fragment_range import FragmentRange, Skyline
from tableformat.deletes.spans.skyline import skyline
from tableformat.deletes.spans.spans import SpanArray, spans_of_prefixes
from tableformat.keys.encoding import encode_rows
from tableformat.keys.key_columns import KeyColumns
from tableformat.keys.sort_marker import SORTED_BY, marker_bytes
from tableformat.merge_on_read.deleted_positions import deleted_positions
from tableformat.merge_on_read.small_files import batches
from tableformat.merge_on_read.small_files.joint_positions import deleted_positions_of
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DataFile, DeleteFile, FileContent
from tableformat.scan import reader

DELETE_NUMBERS = (3, 5)


@st.composite
def files_with_deletes(draw: st.DrawFn) -> tuple[list[PrimitiveType], list[dict[str, Any]], list[Rows]]:
    """Some files, and the keys of an equality delete file at each of `DELETE_NUMBERS`."""
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    row = st.tuples(*[st.sampled_from([None, *VALUES[kind]]) for kind in types])
    files = [
        {
            "rows": draw(st.lists(row, min_size=1, max_size=12)),
            "is_sorted": draw(st.booleans()),
            "column_count": draw(st.sampled_from([len(types), len(types), len(types) - 1])),
            "number": draw(st.integers(1, 6)),
            # Two lists overlap as spans of two scopes may.
            "prefixes": draw(st.lists(st.lists(row, min_size=1, max_size=4), max_size=2)),
            "depth": draw(st.integers(1, len(types))),
            "is_met": draw(st.booleans()),
        }
        for _ in range(draw(st.integers(1, 6)))
    ]
    return types, files, [draw(st.lists(row, min_size=1, max_size=3)) for _ in DELETE_NUMBERS]


def written(path: Path, types: list[PrimitiveType], file: dict[str, Any]) -> DataFile:
    rows, column_count = file["rows"], max(file["column_count"], 1)
    is_sorted = file["is_sorted"] and column_count == len(types)
    if is_sorted:
        encoded = encode_rows(columns_of(rows, types), types).to_pylist()
        rows = [rows[index] for index in sorted(range(len(rows)), key=encoded.__getitem__)]
    table = table_of(types, rows).select(range(column_count))
    if is_sorted:
        table = table.replace_schema_metadata({SORTED_BY: marker_bytes(range(1, len(types) + 1))})
    pq.write_table(table, path, row_group_size=5)
    return DataFile(
        file_path=str(path),
        file_format="PARQUET",
        spec_id=0,
        record_count=len(rows),
        file_size_bytes=path.stat().st_size,
        sequence_number=file["number"],
    )


def equality_delete(path: Path, types: list[PrimitiveType], keys: Rows, number: int) -> DeleteFile:
    pq.write_table(table_of(types, keys), path)
    return DeleteFile(
        file_path=str(path),
        file_format="PARQUET",
        spec_id=0,
        record_count=len(keys),
        file_size_bytes=path.stat().st_size,
        sequence_number=number,
        content=FileContent.EQUALITY_DELETES,
        equality_ids=tuple(range(1, len(types) + 1)),
    )


def spans_of(types: list[PrimitiveType], file: dict[str, Any], schema: Any) -> tuple[SpanArray, ...]:
    key = KeyColumns.of(schema, range(1, len(types) + 1))
    return tuple(
        spans_of_prefixes(key, table_of(types, rows).select(range(file["depth"]))) for rows in file["prefixes"]
    )


@settings(max_examples=examples(0.6), deadline=None)
@given(files_with_deletes(), st.integers(1, 20))
def test_batched_files_lose_the_same_rows_as_single_files(case: Any, batch_rows: int) -> None:
    """RD-1, RD-11, DA-2, DA-4, DA-6."""
    types, files, keys = case
    context, schema = context_of(types)
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patched:
        patched.setattr(batches, "BATCH_ROWS", batch_rows)
        deletes = [
            equality_delete(Path(directory, f"{number}.parquet"), types, rows, number)
            for number, rows in zip(DELETE_NUMBERS, keys, strict=True)
        ]
        tasks = [
            FileScanTask(
                data_file=(data := written(Path(directory, f"data{index}.parquet"), types, file)),
                range_deletes=spans_of(types, file, schema),
                equality_deletes=tuple(each for each in deletes if each.sequence_number > data.sequence_number),
            )
            for index, file in enumerate(files)
        ]
        together = deleted_positions_of(tasks, context)
        alone = [deleted_positions(task, context_of(types)[0]) for task in tasks]
        assert [each.to_array().tolist() for each in together] == [each.to_array().tolist() for each in alone]
        again = deleted_positions_of(tasks, context, thread_count=2)
        assert [each.to_array().tolist() for each in again] == [each.to_array().tolist() for each in alone]


@settings(max_examples=examples(0.6), deadline=None)
@given(files_with_deletes(), st.integers(1, 20))
def test_files_with_shared_skyline_lose_the_same_rows_as_alone(case: Any, batch_rows: int) -> None:
    """RD-1, RD-2, RD-9: if a file is read alone, the fragments that are newer than the file are its spans."""
    types, files, _ = case
    context, schema = context_of(types)
    numbered = [
        spans.with_sequence_number(2 + number)
        for number, file in enumerate(files)
        for spans in spans_of(types, file, schema)
    ]
    assume(numbered)
    shared = Skyline(skyline(SpanArray.concat(numbered)))
    every = len(shared.fragments)
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patched:
        patched.setattr(batches, "BATCH_ROWS", batch_rows)
        data = [written(Path(directory, f"{index}.parquet"), types, file) for index, file in enumerate(files)]
        numbers = [committed_sequence_number(file) for file in data]
        ranges = [FragmentRange(shared, 0, every, number) for number in numbers]
        tasks = [
            FileScanTask(data_file=file, range_deletes=(each,) if (shared.numbers > each.newer_than).any() else ())
            for file, each in zip(data, ranges, strict=True)
        ]
        together = deleted_positions_of(tasks, context)
        alone = [deleted_positions(task, context_of(types)[0]) for task in tasks]
        assert [each.to_array().tolist() for each in together] == [each.to_array().tolist() for each in alone]


SCHEMA = pa.schema(
    [
        pa.field("part", pa.string(), nullable=False),
        pa.field("id", pa.int32(), nullable=False),
        pa.field("stamp", pa.int64()),
    ]
)
Step = Callable[[tf.Table, int], object]
PARTS = st.sampled_from(["a", "b"])
IDS = st.lists(st.integers(0, 7), min_size=1, max_size=6, unique=True)


def rows(part: str, ids: list[int], stamp: int) -> pa.Table:
    columns = {"part": [part] * len(ids), "id": ids, "stamp": [None if number % 3 else stamp for number in ids]}
    return pa.table(columns, schema=SCHEMA)


def one_of(ids: list[int]) -> str:
    return f"id IN ({', '.join(map(str, ids))})"


def widened(table: tf.Table, _: int) -> None:
    with table.iceberg.update_schema() as update:
        update.update_column("id", LongType())


def with_another_column(table: tf.Table, number: int) -> None:
    with table.iceberg.update_schema() as update:
        update.add_column(f"extra{number}", LongType())


STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(lambda part, ids: lambda table, stamp: table.append(rows(part, ids, stamp)), PARTS, IDS),
    st.builds(lambda part, ids: lambda table, stamp: table.append(rows(part, ids, stamp)), PARTS, IDS),
    st.builds(
        lambda part, ids: lambda table, stamp: table.replace(rows(part, ids, stamp), prefix=["part", "id"]), PARTS, IDS
    ),
    st.builds(lambda ids: lambda table, _: table.delete(one_of(ids), mode="scan"), IDS),
    st.builds(
        lambda part, low: lambda table, _: table.delete_prefix(pa.table({"part": [part], "id": [low]})),
        PARTS,
        st.integers(0, 7),
    ),
    st.builds(lambda ids: lambda table, _: table.delete_rows(pa.table({"id": pa.array(ids, pa.int32())})), IDS),
    st.builds(lambda part, ids: lambda table, stamp: table.upsert(rows(part, ids, stamp), missing="null"), PARTS, IDS),
    st.just(widened),
    st.just(with_another_column),
)


@contextmanager
def read_in(patched: pytest.MonkeyPatch, **settings_of_batches: int) -> Iterator[None]:
    with patched.context() as inner:
        for name, value in settings_of_batches.items():
            inner.setattr(batches if hasattr(batches, name) else reader, name, value)
        yield


@settings(max_examples=examples(0.25), deadline=None)
@given(
    steps=st.lists(STEPS, min_size=2, max_size=8),
    version=st.sampled_from(["2", "3"]),
    partition_by=st.sampled_from([[], ["part"]]),
    where=st.sampled_from([None, "id >= 3", "stamp IS NULL", "part = 'a' AND id < 5"]),
    narrow=st.booleans(),
    batch_rows=st.sampled_from([1, 4, 1 << 17]),
    run_bytes=st.sampled_from([1, 1 << 25]),
)
def test_batched_scan_agrees_with_file_by_file_scan(
    steps: list[Step],
    version: str,
    partition_by: list[str],
    where: str | None,
    narrow: bool,
    batch_rows: int,
    run_bytes: int,
) -> None:
    with fast_lake() as lake:
        properties = {"format-version": version}
        table = lake.create_table("db.t", SCHEMA, key=["part", "id"], partition_by=partition_by, properties=properties)
        for number, step in enumerate(steps):
            step(table, number)
            table.refresh()
        columns = ["stamp"] if narrow else [*table.schema.names, *(["_row_id"] if version == "3" else [])]
        found = []
        for settings_of_batches in (
            {"SMALL_FILE_BYTES": -1},
            {"BATCH_ROWS": batch_rows, "ROW_GROUP_RUN_BYTES": run_bytes},
        ):
            with read_in(pytest.MonkeyPatch(), **settings_of_batches):
                scan = lake.load_table("db.t").scan(where=where, columns=columns)
                found.append((scan.to_arrow(), scan.count()))
                found[-1][0].validate(full=True)
                assert scan.to_arrow().equals(found[-1][0])
        (alone, alone_count), (together, together_count) = found
        assert together.to_pylist() == alone.to_pylist()
        assert together.schema.equals(alone.schema, check_metadata=True)
        assert together_count == alone_count == alone.num_rows
