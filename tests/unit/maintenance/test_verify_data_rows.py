"""Verification of rows: nested, dotted or dropped partition sources, and columns of other writers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from damaged_tables import alter_files, path_of, rewrite_rows, the_finding
from maintenance_tables import commit_deletes, keyed_table, rows
from new_lakes import new_lake
from pyiceberg.types import LongType

import tableformat as tf
from tableformat.maintenance.verification.findings import FindingKind
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.testing.table_files import live_data_files, live_delete_files


def created(directory: Path, schema: pa.Schema, *partition_by: str) -> tf.Table:
    catalog = new_lake(directory / "lake")
    return catalog.create_table("db.t", schema, partition_by=list(partition_by))


def with_column(found: pa.Table, name: str, field_id: int) -> pa.Table:
    field = pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(field_id)})
    return found.append_column(field, pa.array(range(len(found)), pa.int64()))


@pytest.mark.parametrize(
    ("schema", "source", "values"),
    [
        (
            pa.schema({"n": pa.int64(), "s": pa.struct({"t": pa.struct({"k": pa.string()})})}),
            "s.t.k",
            [{"n": 1, "s": {"t": {"k": "x"}}}, {"n": 2, "s": {"t": {"k": "yy"}}}],
        ),
        (pa.schema({"n": pa.int64(), "a.b": pa.string()}), "a.b", [{"n": 1, "a.b": "x"}, {"n": 2, "a.b": "yy"}]),
    ],
    ids=["nested", "a dot in the name"],
)
def test_partition_values_of_nested_columns_are_verified(
    tmp_path: Path, schema: pa.Schema, source: str, values: list[Any]
) -> None:
    """MT-74"""
    table = created(tmp_path, schema, f"bucket(64, {source})")
    table.append(pa.Table.from_pylist(values, schema=schema))
    assert table.verify(deep=True).findings == ()
    first, second = (file.partition for file in live_data_files(table))
    assert first != second
    swapped = {first: second, second: first}
    alter_files(table, lambda file: replace(file, partition=swapped[file.partition]))
    assert [each.kind for each in table.verify(deep=True).errors] == [FindingKind.WRONG_PARTITION] * 2


def test_partition_values_of_widened_and_dropped_column_are_verified(tmp_path: Path) -> None:
    """MT-74: the newest schema that has the source knows its type."""
    schema = pa.schema({"n": pa.int64(), "k": pa.int32()})
    table = created(tmp_path, schema, "bucket(64, k)")
    table.append(pa.table({"n": [1], "k": [5]}, schema=schema))
    with table.update_schema() as update:
        update.update_column("k", field_type=LongType())
    table.refresh()
    table.append(pa.table({"n": [2], "k": [2**40]}))
    with table.update_spec() as update:
        update.remove_field("k_bucket")
    table.refresh()
    with table.update_schema() as update:
        update.delete_column("k")
    assert table.refresh().verify(deep=True).findings == ()


def test_equality_delete_check_ignores_other_columns(tmp_path: Path) -> None:
    """MT-75: other writers store whole rows and state bounds of all columns."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(4)))
    table.delete_rows(rows("a", [1]).select(["id1", "id2"]))
    (delete,) = live_delete_files(table)
    rewrite_rows(table, delete, lambda found: with_column(found, "payload", 3))
    for field_id, is_told in ((3, False), (2, True)):
        counts = {1: 1, 2: 1, field_id: 7}
        alter_files(
            table,
            lambda file, counts=counts: replace(file, value_counts=counts) if isinstance(file, DeleteFile) else file,
        )
        if is_told:
            the_finding(table.verify(deep=True), FindingKind.WRONG_COUNT)
        else:
            assert table.verify(deep=True).findings == ()


def test_partition_equality_delete_needs_no_source_column(tmp_path: Path) -> None:
    """MT-75: the entry states its partition."""
    table = keyed_table(tmp_path, partition_by=("bucket(64, payload)",))
    table.append(rows("a", range(4)))
    table.delete_rows(rows("a", [1]).select(["id1", "id2"]))
    (delete,), (data,) = live_delete_files(table), live_data_files(table)
    commit_deletes(table, replace(delete, spec_id=data.spec_id, partition=data.partition, file_path=copied(delete)))
    assert table.verify(deep=True).findings == ()
    assert isinstance(data, DataFile)


def copied(delete: DeleteFile) -> str:
    """Copy its content to another location."""
    location = delete.file_path.replace(".parquet", "-copy.parquet")
    path_of(location).write_bytes(path_of(delete.file_path).read_bytes())
    return location
