"""Columns whose names differ only in case: each expression uses the column that it names, or is rejected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from long_forms import every

import tableformat as tf
from tableformat.errors import DuplicateKeyError, InvalidArgumentError, UnsupportedFeatureError

SCHEMA = pa.schema([("id", pa.int64()), ("Id", pa.int64()), ("v", pa.int64())])
ROWS = pa.table({"id": [1, 2, 3], "Id": [30, 10, 20], "v": [0, 0, 0]})


@pytest.fixture(params=every(2, ["3", "2"]))
def table(catalog: tf.Catalog, request: pytest.FixtureRequest) -> tf.Table:
    table = catalog.create_table("db.t", SCHEMA, key=["id"], properties={"format-version": request.param})
    table.append(ROWS)
    return table


def stored(table: tf.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.refresh().scan().to_arrow().to_pylist())


def _in_transaction(table: tf.Table) -> None:
    with table.transaction() as change:
        change.update("id = 1", set={"v": '"Id"'})


CHANGES: dict[str, tuple[Callable[[tf.Table], object], list[tuple[int, int, int]]]] = {
    "update": (
        lambda table: table.update("id <= 2", set={"v": '"Id" + updated.id'}),
        [(1, 30, 31), (2, 10, 12), (3, 20, 0)],
    ),
    "update_of_both": (
        lambda table: table.update("id = 1", set={"v": "id", "Id": '"Id" + 1'}),
        [(1, 31, 1), (2, 10, 0), (3, 20, 0)],
    ),
    "merge_value": (
        lambda table: (
            table.merge(pa.table({"k": [1]}), on="target.id = source.k")
            .when_matched_update({"v": 'target."Id" + k'})
            .execute()
        ),
        [(1, 30, 31), (2, 10, 0), (3, 20, 0)],
    ),
    "merge_on": (
        lambda table: (
            table.merge(pa.table({"k": [10]}), on='"Id" = source.k').when_matched_update({"v": "9"}).execute()
        ),
        [(1, 30, 0), (2, 10, 9), (3, 20, 0)],
    ),
    "merge_conditions": (
        lambda table: (
            table.merge(pa.table({"id": [1, 2, 4], "Id": [0, 5, 7]}), on="id")
            .when_matched_delete('target."Id" > 10 AND source."Id" = 0')
            .when_not_matched_insert({"id": "source.id", "Id": 'source."Id"', "v": 'source."Id" + 1'}, '"Id" = 7')
            .when_not_matched_by_source_update({"v": '"Id"'}, 'target."Id" = 20')
            .execute()
        ),
        [(2, 10, 0), (3, 20, 20), (4, 7, 8)],
    ),
    "check": (lambda table: table.add_check("big", '"Id" >= 10'), [(1, 30, 0), (2, 10, 0), (3, 20, 0)]),
    "transaction": (_in_transaction, [(1, 30, 30), (2, 10, 0), (3, 20, 0)]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_expression_uses_the_exactly_named_column(table: tf.Table, name: str) -> None:
    change, expected = CHANGES[name]
    change(table)
    assert stored(table) == expected


def test_ambiguous_column_name_is_rejected(table: tf.Table) -> None:
    with pytest.raises(InvalidArgumentError, match="differ only in case"):
        table.update("id = 1", set={"v": "ID"})
    with pytest.raises(InvalidArgumentError, match="differ only in case"):
        table.merge(pa.table({"k": [1]}), on='target."ID" = k').when_matched_delete().execute()
    with pytest.raises(InvalidArgumentError, match=r"target\.v"):
        table.merge(pa.table({"id": [1], "v": [1]}), on="id").when_matched_update({"v": "v + 1"}).execute()
    assert stored(table) == [(1, 30, 0), (2, 10, 0), (3, 20, 0)]


def test_struct_fields_that_differ_only_in_case_are_rejected(catalog: tf.Catalog) -> None:
    fields = pa.struct([("a", pa.int64()), ("A", pa.int64())])
    table = catalog.create_table("db.s", pa.schema([("s", fields), ("v", pa.int64())]))
    table.append(pa.table({"s": pa.array([{"a": 1, "A": 2}], fields), "v": [0]}))
    with pytest.raises(UnsupportedFeatureError, match="differ only in case"):
        table.update("true", set={"v": 's."A"'})
    table.update("true", set={"v": "v + 1"})
    assert stored(table) == [({"a": 1, "A": 2}, 1)]
    with pytest.raises(UnsupportedFeatureError, match="column 's'"):
        table.scan().to_duckdb(duckdb.connect())


def test_key_columns_that_differ_only_in_case_are_distinct(catalog: tf.Catalog) -> None:
    table = catalog.create_table("db.k", SCHEMA, key=["id", "Id"])
    table.append(ROWS)
    table.append(pa.table({"id": [1, 1], "Id": [30, 31], "v": [5, 6]}), on_duplicate="ignore")
    assert stored(table) == [(1, 30, 0), (1, 31, 6), (2, 10, 0), (3, 20, 0)]
    with pytest.raises(DuplicateKeyError):
        table.append(pa.table({"id": [2], "Id": [10], "v": [7]}), on_duplicate="error")
    table.upsert(pa.table({"id": [1, 1], "Id": [31, 32], "v": [8, 9]}))
    assert stored(table) == [(1, 30, 0), (1, 31, 8), (1, 32, 9), (2, 10, 0), (3, 20, 0)]


def test_duckdb_rejects_only_the_table_with_similar_names(catalog: tf.Catalog, table: tf.Table) -> None:
    catalog.create_table("db.other", pa.schema([("n", pa.int64())])).append(pa.table({"n": [7]}))
    table.create_tag("now")
    connection = duckdb.connect()
    tf.duckdb.attach(connection, catalog)
    assert connection.execute("SELECT n FROM lake.db.other").fetchall() == [(7,)]
    for query in ('SELECT id FROM lake.db.t WHERE "Id" = 10', 'SELECT "Id" FROM lake.db.t', "FROM lake.db.t"):
        with pytest.raises(duckdb.Error, match="differ only in case"):
            connection.execute(query).fetchall()
    for statement in (
        'DELETE FROM lake.db.t WHERE "Id" = 10',
        "INSERT INTO lake.db.t VALUES (1, 2, 3)",
        "SELECT * FROM lake.db.t AT (VERSION => 'now')",
    ):
        with pytest.raises(UnsupportedFeatureError, match="differ only in case"):
            tf.duckdb.sql(connection, statement)
    for limit in (None, 1):
        with pytest.raises(UnsupportedFeatureError, match="differ only in case"):
            table.scan(limit=limit).to_duckdb(connection)
    assert table.scan(columns=["Id", "v"], where='"Id" = 10').to_duckdb(connection).fetchall() == [(10, 0)]
    assert stored(table) == [(1, 30, 0), (2, 10, 0), (3, 20, 0)]
