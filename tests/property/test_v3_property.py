"""Any sequence of deletes gives the same rows on version 2, on version 3, and on a table that is upgraded in
between."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tableformat as tf
from tableformat.metadata.content_file import DeleteFile, DeleteKind
from tableformat.testing.table_files import live_delete_files
from tableformat.testing.table_rows import live_tuples

SCHEMA = pa.schema(
    [
        pa.field("part", pa.int64(), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("stamp", pa.int64(), nullable=False),
    ]
)
Step = Callable[[tf.Table, int], object]
Row = tuple[int, int, int]

PARTS = st.integers(0, 2)
IDS = st.lists(st.integers(0, 7), min_size=1, max_size=6, unique=True)


def rows(part: int, ids: list[int], stamp: int) -> pa.Table:
    columns = {"part": [part] * len(ids), "id": ids, "stamp": [stamp * 10 + number for number in ids]}
    return pa.table(columns, schema=SCHEMA)


def one_of(ids: list[int]) -> str:
    return f"id IN ({', '.join(map(str, ids))})"


def several_verbs(table: tf.Table, part: int, ids: list[int], stamp: int) -> None:
    with table.transaction() as transaction:
        transaction.append(rows(part, ids, stamp))
        transaction.delete(one_of(ids[:1]), mode="scan")
        transaction.delete_prefix({"part": part, "id": ids[-1]})


STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(lambda part, ids: lambda table, stamp: table.append(rows(part, ids, stamp)), PARTS, IDS),
    st.builds(lambda ids: lambda table, _: table.delete(one_of(ids), mode="scan"), IDS),
    st.builds(
        lambda part, ids: lambda table, _: table.delete(f"part = {part} AND {one_of(ids)}", mode="scan"), PARTS, IDS
    ),
    st.builds(lambda part: lambda table, _: table.delete_prefix({"part": part}), PARTS),
    st.builds(lambda ids: lambda table, _: table.delete_rows(pa.table({"id": ids})), IDS),
    st.builds(lambda part, ids: lambda table, stamp: table.upsert(rows(part, ids, stamp)), PARTS, IDS),
    st.builds(lambda part, ids: lambda table, stamp: several_verbs(table, part, ids, stamp), PARTS, IDS),
    st.just(lambda table, _: table.maintenance.convert_deletes()),
)


@contextmanager
def three_tables(partition_by: list[str]) -> Iterator[list[tf.Table]]:
    with tempfile.TemporaryDirectory() as directory, tf.open_catalog(f"{directory}/lake") as catalog:
        catalog.create_namespace("db")
        yield [
            catalog.create_table(
                f"db.{name}",
                SCHEMA,
                key=["part", "id"],
                partition_by=partition_by,
                properties={"format-version": version, "commit.manifest.min-count-to-merge": "4"},
            )
            for name, version in (("v2", "2"), ("v3", "3"), ("upgraded", "2"))
        ]


def row_deletes(table: tf.Table) -> list[DeleteFile]:
    return [delete for delete in live_delete_files(table) if delete.equality_ids is None]


def check_vectors(table: tf.Table, position_deletes_before: set[str]) -> None:
    """DA-7: one vector for each data file, and no other delete; CP-19: no new position delete file; CP-20: none
    dangles."""
    deletes = row_deletes(table)
    vectors = [delete for delete in deletes if delete.kind is DeleteKind.DELETION_VECTOR]
    with_vector = {delete.referenced_data_file for delete in vectors}
    assert len(with_vector) == len(vectors)
    old = [delete for delete in deletes if delete.kind is DeleteKind.POSITION]
    assert {delete.file_path for delete in old} <= position_deletes_before
    assert not with_vector & {delete.referenced_data_file for delete in old}
    assert with_vector <= set(table.inspect.files()["file_path"].to_pylist())


def ids_of_rows(table: tf.Table) -> dict[Row, int | None]:
    found = table.scan(columns=[*SCHEMA.names, "_row_id"]).to_arrow().to_pylist()
    return {(row["part"], row["id"], row["stamp"]): row["_row_id"] for row in found}


def check_ids(before: dict[Row, int | None], after: dict[Row, int | None]) -> None:
    """A row that stays keeps the id it has; no two rows share one."""
    assert all(after[row] == row_id for row, row_id in before.items() if row in after and row_id is not None)
    given_ids = [row_id for row_id in after.values() if row_id is not None]
    assert len(set(given_ids)) == len(given_ids)


@pytest.mark.slow
@settings(max_examples=examples(0.12), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(STEPS, min_size=2, max_size=8),
    upgrade_at=st.integers(0, 6),
    partition_by=st.sampled_from([[], ["part"]]),
)
def test_format_versions_agree_after_every_step(steps: list[Step], upgrade_at: int, partition_by: list[str]) -> None:
    """DA-7, CP-10, CP-19, CP-20."""
    with three_tables(partition_by) as (old, new, upgraded):
        for table in (old, new, upgraded):
            table.append(rows(0, [0, 1, 2, 3], 900))
        before_upgrade: set[str] = set()
        known: dict[str, dict[Row, int | None]] = {new.name: {}, upgraded.name: {}}
        for number, step in enumerate(steps):
            if number == upgrade_at:
                before_upgrade = {delete.file_path for delete in row_deletes(upgraded)}
                upgraded.upgrade()
            for table in (old, new, upgraded):
                step(table, number)
            expected = live_tuples(old)
            for table in (new, upgraded):
                assert live_tuples(table) == expected
                if table.metadata.format_version >= 3:
                    check_vectors(table, before_upgrade)
                    ids = ids_of_rows(table)
                    check_ids(known[table.name], ids)
                    known[table.name] = ids
        for table in (old, new, upgraded):
            table.maintenance.convert_deletes()
            assert live_tuples(table.iceberg) == live_tuples(old), "as PyIceberg reads it"
