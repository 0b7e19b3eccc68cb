"""Other engines read and write tables with pending deletes through the server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest
from conftest import Engine, EngineError
from served_lakes import SCHEMA, own_rows, replace_message, rows

import tableformat as tf

_numbers = count()


def new_orders(lake: tf.Catalog, version: int, *, partitioned: bool = False, **properties: str) -> tf.Table:
    table = lake.create_table(
        f"db.orders_{next(_numbers)}",
        SCHEMA,
        key=["customer", "order"],
        partition_by=["customer"] if partitioned else [],
        properties={"format-version": str(version), "commit.retry.min-wait-ms": "1", **properties},
    )
    for number in range(3):
        table.append(rows(("A", number * 10 + 1, "old"), ("A", number * 10 + 2, "old"), ("B", number * 10 + 3, "old")))
    return table


def quote_of(engine: Engine) -> str:
    return "`" if engine.name in ("spark", "flink") else '"'


def seen(engine: Engine, table: tf.Table) -> list[Any]:
    quote = quote_of(engine)
    found = engine.sql(f"SELECT customer, {quote}order{quote}, note FROM served.{table.name}")
    return sorted(found)


def reads_version(engine: Engine, version: int) -> None:
    if engine.name == "trino" and version == 3:
        pytest.skip("Trino 476 reads no deletion vectors")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("encoding", ["range", "equality"])
def test_engines_read_served_tables(
    engine: Engine, lake: tf.Catalog, version: int, partitioned: bool, encoding: str
) -> None:
    reads_version(engine, version)
    table = new_orders(lake, version, partitioned=partitioned, **{"write.delete.prefix-encoding": encoding})
    assert seen(engine, table) == own_rows(table)
    for number in (1, 12, 77):
        replace_message(table, number)
        assert seen(engine, table) == own_rows(table)
    table.delete_prefix({"customer": "B"})
    assert seen(engine, table) == own_rows(table)


@pytest.mark.parametrize("version", [2, 3])
def test_engines_write_between_replaces(engine: Engine, lake: tf.Catalog, version: int) -> None:
    reads_version(engine, version)
    table = new_orders(lake, version)
    quote = quote_of(engine)
    name = f"served.{table.name}"
    statements = [
        f"INSERT INTO {name} VALUES ('Q', 5, 'new')",
        f"DELETE FROM {name} WHERE {quote}order{quote} = 11",
        f"UPDATE {name} SET note = 'changed' WHERE customer = 'B'",
    ]
    if engine.name == "flink":
        del statements[1:]  # Its Iceberg connector has no DELETE, UPDATE or MERGE.
    elif engine.name != "duckdb":
        statements.append(
            f"MERGE INTO {name} t USING (SELECT 'A' AS c, 2 AS o UNION ALL SELECT 'N', 1) s "
            f"ON t.customer = s.c AND t.{quote}order{quote} = s.o WHEN MATCHED THEN DELETE "
            f"WHEN NOT MATCHED THEN INSERT (customer, {quote}order{quote}, note) VALUES (s.c, s.o, 'merged')"
        )
    expected = {(customer, number): note for customer, number, note in own_rows(table)}
    effects: list[Any] = [
        lambda: expected.update({("Q", 5): "new"}),
        lambda: expected.pop(("A", 11)),
        lambda: expected.update({key: "changed" for key in expected if key[0] == "B"}),
        lambda: (expected.pop(("A", 2)), expected.update({("N", 1): "merged"})),
    ]
    for number, (statement, effect) in enumerate(zip(statements, effects, strict=False)):
        replace_message(table, 100 + number)
        expected["A", 100 + number] = f"new {100 + number}"
        engine.sql(statement)
        effect()
        rows_now = sorted((*key, note) for key, note in expected.items())
        assert own_rows(table) == rows_now
        assert seen(engine, table) == rows_now
    assert [each for each in table.maintenance.verify(deep=True).findings if each.severity.value == "error"] == []


def test_engines_read_during_concurrent_writes(engine: Engine, lake: tf.Catalog) -> None:
    """Each answer is a state that was the head at some moment of the query."""
    table = new_orders(lake, 2)
    states = [own_rows(table)]

    def write() -> None:
        for number in range(200, 230):
            replace_message(table, number)
            states.append(own_rows(table))

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        reads = 0
        while not writing.done():
            first = len(states) - 1
            try:
                found = seen(engine, table)
            except EngineError as error:
                # DuckDB reads the table as it was when its transaction began, which the server may not have converted.
                if engine.name == "duckdb" and "RANGE_DELETES_PARQUET" in str(error):
                    continue
                raise
            assert found in states[first:] or found == own_rows(table)
            reads += 1
        writing.result()
    assert reads > 0
    assert seen(engine, table) == own_rows(table)


@pytest.mark.parametrize(
    "statement",
    [
        "CALL served.system.expire_snapshots("
        "table => '{name}', older_than => TIMESTAMP '2100-01-01', retain_last => 1)",
        "CALL served.system.rewrite_data_files(table => '{name}', options => map('min-input-files', '2'))",
        "CALL served.system.rewrite_position_delete_files(table => '{name}', options => map('rewrite-all', 'true'))",
        "CALL served.system.rewrite_manifests(table => '{name}')",
        "ALTER TABLE served.{name} CREATE TAG monday",
        "ALTER TABLE served.{name} CREATE BRANCH aside",
        "ALTER TABLE served.{name} ADD COLUMN extra STRING",
    ],
)
@pytest.mark.parametrize("version", [2, 3])
def test_spark_maintenance_through_the_server(engine: Engine, lake: tf.Catalog, version: int, statement: str) -> None:
    if engine.name != "spark":
        pytest.skip("these are procedures of Iceberg's Spark extension")
    table = new_orders(lake, version)
    for number in (1, 12):
        replace_message(table, number)
        seen(engine, table)
    expected = own_rows(table)
    try:
        engine.sql(statement.format(name=table.name))
    except EngineError as error:
        if version == 3 and "rewrite_position_delete_files" in statement:
            pytest.skip(f"Iceberg: {error}")
        raise
    assert own_rows(table) == expected
    assert seen(engine, table) == expected
    replace_message(table, 21)
    assert seen(engine, table) == own_rows(table)
    assert [each for each in table.maintenance.verify(deep=True).findings if each.severity.value == "error"] == []
