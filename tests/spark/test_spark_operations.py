"""`option("operation", ...)`: rows that change or delete stored rows, in batches and in streams."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from long_forms import every
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from tableformat import Catalog, RangePartitions, Table

ROWS = "customer string, order long, item string"


EVENTS = f"{ROWS}, op string, at double, number long"


CHANGES = {"operation": "changes", "op-column": "op", "order-by": "at, number"}


LAYOUTS = pytest.mark.parametrize(
    "layout", every(3, ["PARTITIONED BY (item)", "PARTITIONED BY (bucket(2, customer))", "v3"])
)


OTHER_PARTITIONS = pytest.mark.parametrize("layout", every(2, ["v3 PARTITIONED BY (item)", "PARTITIONED BY (item)"]))


"""The rows of one key may be in several partitions."""


@pytest.fixture
def layout() -> str:
    return ""


@pytest.fixture
def table(spark: SparkSession, lake: Catalog, namespace: str, layout: str) -> Table:
    """One row for each order: ann 1, ann 2 and bob 1."""
    properties = ", 'format-version' = '3'" if layout.startswith("v3") else ""
    partitions = layout.removeprefix("v3")
    spark.sql(
        f"CREATE TABLE lake.{namespace}.t (customer STRING NOT NULL, order BIGINT NOT NULL, item STRING NOT NULL) "
        f"{partitions} TBLPROPERTIES ('tableformat.key' = 'customer,order'{properties})"
    )
    spark.sql(f"INSERT INTO lake.{namespace}.t VALUES ('ann', 1, 'old'), ('ann', 2, 'old'), ('bob', 1, 'old')")
    return lake.load_table(f"{namespace}.t")


def write(frame: DataFrame, table: Table, operation: str, **options: str) -> None:
    frame.writeTo(f"lake.{table.name}").option("operation", operation).options(**options).append()


def rows(spark: SparkSession, table: Table) -> list[str]:
    found = sorted(f"{r.customer} {r.order} {r.item}" for r in spark.table(f"lake.{table.name}").collect())
    by_python = table.refresh().scan().to_arrow().to_pylist()
    assert found == sorted(f"{r['customer']} {r['order']} {r['item']}" for r in by_python)
    return found


def frame(spark: SparkSession, given: list[tuple[Any, ...]], columns: str = ROWS, tasks: int = 2) -> DataFrame:
    return spark.createDataFrame(given, columns).repartition(tasks)


@LAYOUTS
def test_an_upsert_replaces_rows_with_the_same_key(spark: SparkSession, table: Table) -> None:
    """SP-106"""
    snapshots = len(table.metadata.snapshots)
    write(frame(spark, [("ann", 1, "new"), ("zoe", 9, "new")]), table, "upsert")
    assert rows(spark, table) == ["ann 1 new", "ann 2 old", "bob 1 old", "zoe 9 new"]
    assert len(table.metadata.snapshots) == snapshots + 1


@LAYOUTS
@pytest.mark.since_spark("4.0", "rows with other columns than the table's")
@pytest.mark.parametrize("tasks", every(2, [3, 1]))
def test_last_row_of_a_key_wins_across_tasks(spark: SparkSession, table: Table, tasks: int) -> None:
    """SP-106, CP-68"""
    given = [("ann", 1, "a", 2), ("ann", 1, "b", 3), ("ann", 1, "c", 1), ("bob", 1, "d", None), ("bob", 1, "e", 0)]
    write(frame(spark, given, f"{ROWS}, number long", tasks), table, "UPSERT", **{"order-by": "number"})
    assert rows(spark, table) == ["ann 1 b", "ann 2 old", "bob 1 e"]


@OTHER_PARTITIONS
@pytest.mark.parametrize("tasks", every(2, [3, 1]))
@pytest.mark.parametrize("operation", ["upsert", "insert-error"])
def test_duplicate_keys_are_rejected(spark: SparkSession, table: Table, tasks: int, operation: str) -> None:
    """CP-67"""
    before = rows(spark, table)
    with pytest.raises(AnalysisException, match="'customer': 'zoe', 'order': 1"):
        write(frame(spark, [("zoe", 1, "a"), ("zoe", 1, "b"), ("zoe", 1, "c")], tasks=tasks), table, operation)
    assert rows(spark, table) == before


@OTHER_PARTITIONS
@pytest.mark.parametrize("tasks", every(2, [3, 1]))
def test_insert_ignore_adds_one_row_per_key_across_partitions(spark: SparkSession, table: Table, tasks: int) -> None:
    """SP-109, SQ-33: the items of a key are in several partitions, and some of these have another key between them."""
    items = ("a", "b", "c", "d")
    given = [*(("zoe", 1, item) for item in items), ("ann", 1, "b"), ("ann", 1, "e"), ("cem", 1, "a"), ("cem", 1, "d")]
    write(frame(spark, given, tasks=tasks), table, "insert-ignore")
    added = rows(spark, table)
    assert [row for row in added if row.startswith(("ann", "bob"))] == ["ann 1 old", "ann 2 old", "bob 1 old"]
    assert [row.rsplit(" ", 1)[0] for row in added[3:]] == ["cem 1", "zoe 1"]
    write(frame(spark, given, tasks=tasks), table, "insert-ignore")
    assert rows(spark, table) == added


@LAYOUTS
@pytest.mark.parametrize("tasks", every(2, [3, 1]))
def test_insert_ignore_skips_existing_keys(spark: SparkSession, table: Table, tasks: int) -> None:
    """SP-109"""
    given = [("ann", 1, "new"), ("zoe", 1, "new"), ("zoe", 1, "new"), ("zoe", 1, "new"), ("bob", 1, "new")]
    write(frame(spark, given, tasks=tasks), table, "insert-ignore")
    assert rows(spark, table) == ["ann 1 old", "ann 2 old", "bob 1 old", "zoe 1 new"]
    write(frame(spark, given, tasks=tasks), table, "insert-ignore")
    assert rows(spark, table) == ["ann 1 old", "ann 2 old", "bob 1 old", "zoe 1 new"]


def test_insert_error_rejects_existing_keys(spark: SparkSession, table: Table) -> None:
    """SP-109"""
    with pytest.raises(AnalysisException, match="'customer': 'bob', 'order': 1"):
        write(frame(spark, [("zoe", 1, "new"), ("bob", 1, "new")]), table, "insert-error")
    write(frame(spark, [("zoe", 1, "new")]), table, "insert-error")
    assert rows(spark, table) == ["ann 1 old", "ann 2 old", "bob 1 old", "zoe 1 new"]


@LAYOUTS
@pytest.mark.since_spark("4.0", "rows with other columns than the table's")
def test_delete_accepts_keys_and_prefixes(spark: SparkSession, table: Table) -> None:
    """SP-107"""
    write(frame(spark, [(1, "bob"), (7, "zoe")], "order int, customer string"), table, "delete")
    assert rows(spark, table) == ["ann 1 old", "ann 2 old"]
    write(frame(spark, [("bob", 1, "old"), ("cem", 1, "old")]), table, "upsert")
    tombstones = [("ann", None, b"1"), ("bob", 1, b"2"), ("bob", 1, b"3")]
    write(frame(spark, tombstones, "customer string, order long, value binary"), table, "delete")
    assert rows(spark, table) == ["cem 1 old"]
    write(frame(spark, [("cem",)], "customer string"), table, "delete")
    assert rows(spark, table) == []


@pytest.mark.since_spark("4.0", "rows with other columns than the table's")
def test_delete_requires_leading_key_columns(spark: SparkSession, table: Table) -> None:
    """SP-107"""
    before = rows(spark, table)
    for given, columns, message in (
        ([(1,)], "order long", "lack the column customer"),
        ([(None, 1)], "customer string, order long", "no value in the key column customer"),
    ):
        with pytest.raises(Exception, match=message):
            write(frame(spark, given, columns), table, "delete")
    assert rows(spark, table) == before


@LAYOUTS
@pytest.mark.since_spark("4.0", "rows with other columns than the table's")
@pytest.mark.parametrize("tasks", every(2, [3, 1]))
def test_last_change_event_per_key_is_applied(spark: SparkSession, table: Table, tasks: int) -> None:
    """SP-108, CF-12: deletes precede rows of equal order, like the images before and after an update."""
    given = [
        ("ann", 1, None, "D", 1.0, 1),
        ("ann", 1, "a", "insert", 2.0, 1),
        ("ann", 2, "old", "update_preimage", 5.0, 1),
        ("ann", 2, "b", "update_postimage", 5.0, 1),
        ("bob", 1, "c", "+U", 3.0, 1),
        ("bob", 1, "c", "-D", 3.0, 2),
        ("cem", 1, "d", "c", None, 1),
        ("cem", 1, "e", "r", float("nan"), 1),
    ]
    write(frame(spark, given, EVENTS, tasks), table, **CHANGES)
    assert rows(spark, table) == ["ann 1 a", "ann 2 b", "cem 1 e"]


@LAYOUTS
@pytest.mark.since_spark("4.0", "rows with other columns than the table's")
@pytest.mark.parametrize(("tasks", "key"), [(3, (None, None)), (1, ("bob", 1))])
def test_truncate_event_empties_the_table_in_event_order(
    spark: SparkSession, table: Table, tasks: int, key: tuple[str | None, int | None]
) -> None:
    """SP-108, CF-13: whichever key its row has."""
    given = [
        ("ann", 1, "a", "U", 1.0, 1),
        (*key, None, "truncate", 2.0, 1),
        ("bob", 1, "b", "I", 3.0, 1),
        ("cem", 1, "c", "I", 1.5, 1),
        ("cem", 2, "d", "I", 2.5, 1),
        (None, None, None, "T", 0.0, 1),
    ]
    write(frame(spark, given, EVENTS, tasks), table, **CHANGES)
    assert rows(spark, table) == ["bob 1 b", "cem 2 d"]


@pytest.mark.since_spark("4.0", "rows with other columns than the table's")
def test_invalid_change_events_are_rejected(spark: SparkSession, table: Table) -> None:
    """SP-108"""
    before = rows(spark, table)
    for event, message in (
        (("ann", 1, "a", "merge", 1.0, 1), "'merge', which is not an operation"),
        (("ann", 1, "a", None, 1.0, 1), "null, which is not an operation"),
        (("ann", None, "a", "U", 1.0, 1), "no value in the key column order"),
        (("ann", 1, None, "U", 1.0, 1), "no value in the column item"),
    ):
        with pytest.raises(Exception, match=message):
            write(frame(spark, [event], EVENTS), table, **CHANGES)
    assert rows(spark, table) == before


@pytest.mark.since_spark("4.0", "rows with other columns than the table's")
def test_upsert_with_missing_column_is_rejected(spark: SparkSession, table: Table) -> None:
    """CP-27: otherwise the stored value would be lost."""
    spark.sql(f"ALTER TABLE lake.{table.name} ADD COLUMN note STRING")
    for operation, more in (("upsert", {}), ("changes", {"op-column": "op", "order-by": "number"})):
        given = frame(spark, [("ann", 1, "new", "U", 1)], f"{ROWS}, op string, number long")
        with pytest.raises(AnalysisException, match="lack note"):
            write(given if more else given.drop("op", "number"), table, operation, **more)
    write(frame(spark, [("ann", 1, "new"), ("zoe", 1, "new")]), table, "insert-ignore")
    assert rows(spark, table) == ["ann 1 old", "ann 2 old", "bob 1 old", "zoe 1 new"]


def test_invalid_operation_options_are_rejected(spark: SparkSession, table: Table) -> None:
    """SP-106"""
    before = rows(spark, table)
    given = frame(spark, [("ann", 1, "new")])
    for options, message in (
        ({"operation": "upserts"}, "upsert"),
        ({"op-column": "item"}, "requires operation = 'changes'"),
        ({"operation": "upsert", "op-column": "item"}, "Remove op-column"),
        ({"operation": "upsert", "replace-prefix": "customer"}, "cannot be combined"),
        ({"operation": "upsert", "replace-interval": "customer", "lower": "a"}, "cannot be combined"),
        ({"operation": "changes", "order-by": "item"}, "needs op-column"),
        ({"operation": "changes", "op-column": "item"}, "needs order-by"),
        ({"operation": "delete", "order-by": "item"}, "adds none"),
        ({"operation": "upsert", "order-by": "order"}, "equal in all rows"),
        ({"operation": "upsert", "order-by": "number"}, "order-by refers to number, which the rows do not have"),
    ):
        with pytest.raises(AnalysisException, match=message):
            given.writeTo(f"lake.{table.name}").options(**options).append()
    with pytest.raises(AnalysisException, match="requires an append"):
        given.writeTo(f"lake.{table.name}").option("operation", "upsert").overwritePartitions()
    new = given.writeTo(f"lake.{table.name}_new").tableProperty("tableformat.key", "customer,order")
    with pytest.raises(AnalysisException, match="creates or replaces"):
        new.option("operation", "upsert").create()
    assert rows(spark, table) == before


def test_operations_require_a_key(spark: SparkSession, namespace: str) -> None:
    """SP-106"""
    spark.sql(f"CREATE TABLE lake.{namespace}.keyless (customer STRING, order BIGINT, item STRING)")
    with pytest.raises(AnalysisException, match="requires a key"):
        frame(spark, [("ann", 1, "a")]).writeTo(f"lake.{namespace}.keyless").option("operation", "upsert").append()


@pytest.mark.since_spark("4.0", "rows with other columns than the table's")
def test_a_named_batch_is_written_once(spark: SparkSession, table: Table) -> None:
    """SP-99"""
    named = {"application-id": "loader", "batch-id": "7"}
    tombstone = frame(spark, [("ann", 1)], "customer string, order long")
    write(tombstone, table, "delete", **named)
    write(frame(spark, [("ann", 1, "again")]), table, "upsert")
    before = rows(spark, table)
    write(tombstone, table, "delete", **named)
    write(frame(spark, [("bob", 1, "other")]), table, "upsert", **named)
    write(frame(spark, [("bob", 1, "other")]), table, "insert-error", **named)
    assert rows(spark, table) == before


@LAYOUTS
def test_stream_of_change_events_is_applied_once(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    """SP-106, SP-108: one snapshot a micro-batch; an epoch that is repeated changes nothing."""
    batches = [
        [("ann", 1, "a", "U", 1.0, 1), ("ann", 1, "b", "U", 2.0, 1), ("bob", 1, None, "D", 1.0, 1)],
        [("bob", 1, "c", "I", 3.0, 1), ("ann", 1, None, "D", 5.0, 1), ("ann", 1, "d", "U", 4.0, 1)],
    ]
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    source.mkdir()
    expected = [["ann 1 b", "ann 2 old"], ["ann 2 old", "bob 1 c"]]
    for number, batch in enumerate(batches):
        names = ("customer", "order", "item", "op", "at", "number")
        text = "\n".join(json.dumps(dict(zip(names, event, strict=True))) for event in batch)
        (source / f"{number}.json").write_text(text)
        _run(spark, table, EVENTS, source, checkpoint, CHANGES)
        assert rows(spark, table) == expected[number]
        snapshot_id = table.snapshot_id
        (checkpoint / "commits" / str(number)).unlink()
        for left in (checkpoint / "commits").glob(f".{number}.*"):
            left.unlink()
        _run(spark, table, EVENTS, source, checkpoint, CHANGES)
        assert (rows(spark, table), table.snapshot_id) == (expected[number], snapshot_id)


def test_streams_of_tombstones_and_inserts(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    """SP-107, SP-109"""
    for name, text in (
        ("delete", '{"customer": "ann"}\n{"customer": "bob", "order": 1}'),
        ("insert-ignore", '{"customer": "cem", "order": 1, "item": "a"}\n{"customer": "cem", "order": 1, "item": "a"}'),
        ("upsert", '{"customer": "cem", "order": 1, "item": "b"}'),
        ("insert-ignore", '{"customer": "cem", "order": 1, "item": "c"}'),
    ):
        source = tmp_path / f"in-{len(list(tmp_path.iterdir()))}"
        source.mkdir()
        (source / "0.json").write_text(text)
        columns = "customer string, order long" if name == "delete" else ROWS
        _run(spark, table, columns, source, source / "checkpoint", {"operation": name})
    assert rows(spark, table) == ["cem 1 b"]


def _run(
    spark: SparkSession, table: Table, columns: str, source: Path, checkpoint: Path, options: dict[str, str]
) -> None:
    query = (
        spark.readStream.schema(columns)
        .option("maxFilesPerTrigger", 1)
        .option("pathGlobFilter", "*.json")
        .json(str(source))
        .writeStream.options(**options)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .toTable(f"lake.{table.name}")
    )
    query.awaitTermination()


def test_added_column_stops_an_upsert_stream(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    """CP-27"""
    source = tmp_path / "in"
    source.mkdir()
    (source / "0.json").write_text('{"customer": "ann", "order": 1, "item": "a"}')
    query = (
        spark.readStream.schema(ROWS)
        .json(str(source))
        .writeStream.option("operation", "upsert")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .toTable(f"lake.{table.name}")
    )
    query.processAllAvailable()
    spark.sql(f"ALTER TABLE lake.{table.name} ADD COLUMN note STRING")
    (source / "1.json").write_text('{"customer": "ann", "order": 1, "item": "b"}')
    with pytest.raises(Exception, match="note"):
        query.processAllAvailable()
    assert rows(spark, table) == ["ann 1 a", "ann 2 old", "bob 1 old"]


@pytest.mark.since_spark("4.1", "CHECK constraints")
def test_constraints_apply_only_to_added_rows(spark: SparkSession, table: Table) -> None:
    """SP-107, SP-108: a delete event has null in other columns."""
    spark.sql(f"ALTER TABLE lake.{table.name} ADD CONSTRAINT named CHECK (item IS NOT NULL AND item <> 'bad')")
    given = [("ann", 1, None, "d", 1.0, 1), ("ann", 2, "new", "u", 1.0, 1)]
    write(frame(spark, given, EVENTS), table, **CHANGES)
    write(frame(spark, [("bob", 1)], "customer string, order long"), table, "delete")
    assert rows(spark, table) == ["ann 2 new"]
    with pytest.raises(Exception, match="named"):
        write(frame(spark, [("ann", 2, "bad", "u", 1.0, 1)], EVENTS), table, **CHANGES)
    with pytest.raises(Exception, match="named"):
        write(frame(spark, [("ann", 2, "bad")]), table, "upsert")


@pytest.mark.since_spark("4.0", "rows with other columns than the table's")
def test_change_events_on_a_table_with_range_partitions(spark: SparkSession, table: Table) -> None:
    """SP-108: deletes need no range partition; uncovered rows are rejected."""
    table.range_partitions.define(RangePartitions(on=["order"], bounds=[(0, 5), (5, 10)]))
    given = [("ann", 1, "a", "U", 1.0, 1), ("ann", 7, "b", "I", 1.0, 1), ("zoe", 99, None, "D", 1.0, 1)]
    write(frame(spark, [*given, ("bob", 1, None, "D", 2.0, 1)], EVENTS, 1), table, **CHANGES)
    assert rows(spark, table) == ["ann 1 a", "ann 2 old", "ann 7 b"]
    with pytest.raises(AnalysisException, match="99"):
        write(frame(spark, [("zoe", 99, "c", "I", 1.0, 1)], EVENTS), table, **CHANGES)
    refused = f"{table.name}_refused"
    spark.sql(f"CREATE TABLE lake.{refused} (customer STRING, order BIGINT, item STRING, _refused_reason STRING)")
    diverting = {"on-refused": "divert", "refused-rows-table": refused}
    write(frame(spark, [("zoe", 99, "c"), ("ann", 2, "d"), ("ann", 1, "e")], ROWS, 1), table, "upsert", **diverting)
    assert rows(spark, table) == ["ann 1 e", "ann 2 d", "ann 7 b"]
    assert [each.customer for each in spark.table(f"lake.{refused}").collect()] == ["zoe"]


@pytest.mark.parametrize("layout", [pytest.param("", marks=pytest.mark.long), "v3"])
def test_key_of_two_tasks_with_diverted_rows_is_kept(spark: SparkSession, table: Table) -> None:
    """SP-109, RP-22: both tasks have a row of "zoe 1", and a row whose key another task has a rejected row of."""
    table.range_partitions.define(RangePartitions(on=["item"], bounds=[("a", "p")]))
    refused = f"{table.name}_refused"
    spark.sql(f"CREATE TABLE lake.{refused} (customer STRING, order BIGINT, item STRING)")
    tasks = (
        [("zoe", 1, "b"), ("cem", 1, "c"), ("eve", 1, "z")],
        [("zoe", 1, "d"), ("cem", 1, "z"), ("eve", 1, "c")],
    )
    given = spark.createDataFrame(spark.sparkContext.parallelize([*tasks[0], *tasks[1]], 2), ROWS)
    write(given, table, "insert-ignore", **{"on-refused": "divert", "refused-rows-table": refused})
    found = rows(spark, table)
    assert found[:3] == ["ann 1 old", "ann 2 old", "bob 1 old"]
    assert found[3:] in (["zoe 1 b"], ["zoe 1 d"])
    assert sorted(each.customer for each in spark.table(f"lake.{refused}").collect()) == ["cem", "cem", "eve", "eve"]


@pytest.mark.since_spark("4.0", "rows with other columns than the table's")
@pytest.mark.parametrize("seed", every(4, range(4)))
def test_event_batches_agree_with_sequential_application(spark: SparkSession, table: Table, seed: int) -> None:
    """SP-108: against a program that takes the events one by one."""
    draw = random.Random(seed)
    state = {("ann", 1): "old", ("ann", 2): "old", ("bob", 1): "old"}
    for batch in range(3):
        places = draw.sample(range(100), 12)
        events: list[tuple[Any, ...]] = []
        for place in places:
            code = draw.choice(["I", "update_postimage", "+U", "D", "-D", "update_preimage", "T" if batch else "c"])
            key = (None, None) if code == "T" else (draw.choice(["ann", "bob", "cem"]), draw.randrange(3))
            events.append(
                (*key, None if code in ("T", "D", "-D", "update_preimage") else f"v{place}", code, 0.0, place)
            )
        for customer, order, item, code, _, _ in sorted(events, key=lambda event: event[5]):
            if code == "T":
                state.clear()
            elif item is None:
                state.pop((customer, order), None)
            else:
                state[customer, order] = item
        write(frame(spark, events, EVENTS, draw.choice([1, 2, 5])), table, **CHANGES)
        assert rows(spark, table) == sorted(f"{customer} {order} {item}" for (customer, order), item in state.items())
