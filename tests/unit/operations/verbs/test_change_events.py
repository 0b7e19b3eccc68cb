"""`apply_changes` compared with applying the events one by one."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import (
    InvalidArgumentError,
    InvalidKeyError,
    RowNotFoundError,
    RowsRefusedError,
    UnknownColumnError,
)
from tableformat.write.rows.last_per_key import last_row_per_key

SCHEMA = pa.schema(
    [
        pa.field("customer", pa.string(), nullable=False),
        pa.field("order", pa.int64(), nullable=False),
        pa.field("item", pa.string()),
    ]
)


UPSERTS = ["I", "insert", "r", "+U", "update_postimage"]


DELETES = ["D", "-D", "-U", "update_preimage"]


_numbers = itertools.count()


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> tf.Catalog:
    return new_lake(tmp_path_factory.mktemp("lake"))


def new_table(catalog: tf.Catalog, rows: list[tuple[Any, ...]] = (), **options: Any) -> tf.Table:
    table = catalog.create_table(f"db.t{next(_numbers)}", SCHEMA, **{"key": ["customer", "order"], **options})
    if rows:
        table.append(rows_of(rows))
    return table


def rows_of(rows: list[tuple[Any, ...]], schema: pa.Schema = SCHEMA) -> pa.Table:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in schema]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema.names)


def events_of(events: list[tuple[Any, ...]]) -> pa.Table:
    """Customer, order, item, code, and the two columns of the order."""
    more = [("_op", pa.string()), ("day", pa.int64()), ("number", pa.float64())]
    nullable = [field.with_nullable(True) for field in SCHEMA]
    return rows_of(events, pa.schema([*nullable, *more]))


def stored(table: tf.Table) -> Counter[tuple[Any, ...]]:
    found = table.refresh().scan().to_arrow().select(SCHEMA.names).to_pylist()
    return Counter(tuple(row.values()) for row in found)


def one_by_one(rows: list[tuple[Any, ...]], events: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """A program that applies the events in their order, by day and number: nulls and NaN first."""
    state = {row[:2]: row for row in rows}
    rank = lambda value: (0, 0) if value is None else (1, 0) if math.isnan(value) else (2, value)  # noqa: E731
    for *row, code, _, _ in sorted(events, key=lambda event: (rank(event[4]), rank(event[5]))):
        if code in ("t", "TRUNCATE"):
            state.clear()
        elif code in UPSERTS:
            state[tuple(row[:2])] = tuple(row)
        else:
            state.pop(tuple(row[:2]), None)
    return Counter(state.values())


@pytest.mark.parametrize("seed", range(12))
def test_events_agree_with_sequential_application(catalog: tf.Catalog, seed: int) -> None:
    """CF-12, CF-13: order of two columns, ties in the order of the input, truncates, deletes with a key alone."""
    draw = random.Random(seed)
    properties = {"format-version": str(draw.choice([2, 3]))}
    partition = draw.choice([None, ["bucket(2, customer)"], ["item"]])
    rows = [(customer, order, "old") for customer in "ab" for order in range(3)]
    table = new_table(
        catalog, rows, properties=properties, **({} if partition is None else {"partition_by": partition})
    )
    events = []
    for _ in range(draw.randrange(1, 25)):
        code = draw.choice([*UPSERTS, *DELETES, *(["t", "TRUNCATE"] if seed % 3 == 0 else [])])
        key = (None, None) if code in ("t", "TRUNCATE") else (draw.choice("abc"), draw.randrange(4))
        item = draw.choice(["x", "y", "z"]) if code in UPSERTS else None
        events.append((*key, item, code, draw.choice([1, 2, None]), draw.choice([1.0, float("nan"), None, -2.0])))
    before = len(table.metadata.snapshots)
    table.apply_changes(events_of(events), order_by=["day", "number"])
    assert stored(table) == one_by_one(rows, events)
    assert len(table.metadata.snapshots) == before + 1


@pytest.mark.parametrize("memory_bytes", [1, 1 << 30])
def test_reset_event_discards_earlier_events(memory_bytes: int) -> None:
    """CF-13: in memory and in temporary files."""
    given = pa.table(
        {
            "k": ["a", "b", None, "a", "c", None, "b"],
            "o": [1, 5, 3, 4, 2, 0, None],
            "r": [False, False, True, False, False, True, False],
        }
    )
    found = last_row_per_key(given.to_reader(2), ["k"], ["o"], resets="r", memory_bytes=memory_bytes)
    assert found.read_all().select(["k", "o"]).to_pylist() == [
        {"k": "b", "o": 5},
        {"k": None, "o": 3},
        {"k": "a", "o": 4},
    ]
    nothing = given.set_column(2, "r", pa.array([False] * 7))
    found = last_row_per_key(nothing.to_reader(2), ["k"], ["o"], resets="r", memory_bytes=memory_bytes)
    assert found.read_all()["o"].to_pylist() == [5, 3, 4, 2]


def test_unknown_operation_code_is_rejected(catalog: tf.Catalog) -> None:
    """CF-12"""
    table = new_table(catalog, [("a", 1, "old")])
    events = [("a", 1, "x", "merge", 1, None), ("a", 1, "x", "I", 2, None)]
    with pytest.raises(InvalidArgumentError, match="'merge', which is not an operation"):
        table.apply_changes(events_of(events), order_by="day")
    with pytest.raises(InvalidArgumentError, match="None, which is not an operation"):
        table.apply_changes(events_of([("a", 1, "x", None, 1, None)]), order_by="day")
    with pytest.raises(UnknownColumnError):
        table.apply_changes(events_of(events), order_by=["day", "dya"])


def test_missing_columns_keep_stored_values_since_the_last_delete(catalog: tf.Catalog) -> None:
    """CF-16: an image before an update deletes nothing for good."""
    old = [("a", 1, "a1"), ("a", 2, "a2"), ("a", 3, "a3"), ("a", 4, "a4")]
    events = events_of(
        [
            ("a", 1, None, "U", 1, None),
            ("a", 2, None, "D", 1, None),
            ("a", 2, None, "I", 2, None),
            ("a", 3, None, "update_preimage", 1, None),
            ("a", 3, None, "update_postimage", 1, None),
            ("a", 4, None, "D", 1, None),
            ("b", 1, None, "I", 1, None),
        ]
    ).drop(["item", "number"])
    table = new_table(catalog, old)
    table.apply_changes(events, order_by="day", missing="keep")
    assert stored(table) == Counter([("a", 1, "a1"), ("a", 2, None), ("a", 3, "a3"), ("b", 1, None)])
    table.apply_changes(
        events_of([(None, None, None, "T", 1, None), ("a", 1, None, "U", 2, None)]).drop(["item", "number"]),
        order_by="day",
        missing="keep",
    )
    assert stored(table) == Counter([("a", 1, None)])


def row_events_one_by_one(
    rows: list[tuple[Any, ...]], events: list[tuple[Any, ...]]
) -> Counter[tuple[Any, ...]] | None:
    """The expected events, or None if a delete finds no row, unless a truncate follows."""
    state, is_wrong = Counter(rows), False
    for *row, code, _, _ in sorted(events, key=lambda event: event[4]):
        if code == "T":
            state, is_wrong = Counter(), False
        elif code == "I":
            state[tuple(row)] += 1
        else:
            is_wrong |= not state[tuple(row)]
            state[tuple(row)] -= 1
    return None if is_wrong else +state


@pytest.mark.parametrize("seed", range(20))
def test_whole_row_delete_removes_exactly_one_equal_row(catalog: tf.Catalog, seed: int) -> None:
    """CF-15: against a multiset, in tables without a key, of both versions, partitioned and not, in several files."""
    draw = random.Random(seed)
    options: dict[str, Any] = {"key": [], "properties": {"format-version": str(draw.choice([2, 3]))}}
    if draw.random() < 0.5:
        options["partition_by"] = ["customer"]
    kinds = [("a", 1, "x"), ("a", 1, None), ("b", 1, "x"), ("b", 2, "x")]
    table, rows = new_table(catalog, **options), []
    for _ in range(draw.randrange(4)):
        portion = [draw.choice(kinds) for _ in range(draw.randrange(1, 6))]
        table.append(rows_of(portion))
        rows += portion
    codes = ["I", "I", "D", "-U", *(["T"] if seed % 4 == 0 else [])]
    events = []
    for _ in range(draw.randrange(1, 8)):
        code = draw.choice(codes)
        events.append((*((None,) * 3 if code == "T" else draw.choice(kinds)), code, draw.randrange(3), None))
    expected = row_events_one_by_one(rows, events)
    given = events_of(events).drop(["number"])
    if expected is None:
        with pytest.raises(RowNotFoundError):
            table.apply_changes(given, order_by="day", key=None)
        assert stored(table) == Counter(rows)
    else:
        table.apply_changes(given, order_by="day", key=None)
        assert stored(table) == expected


@pytest.mark.parametrize("version", [2, 3])
def test_feed_of_keyless_table_rebuilds_its_rows(catalog: tf.Catalog, version: int) -> None:
    """CF-15: floats, nested columns and nulls; applied version by version and all together."""
    schema = pa.schema(
        [
            ("customer", pa.string()),
            ("price", pa.float64()),
            ("tags", pa.list_(pa.string())),
            ("at", pa.timestamp("us")),
        ]
    )
    properties = {"format-version": str(version)}
    source = catalog.create_table(f"db.t{next(_numbers)}", schema, properties=properties)
    batches = [
        [("ann", 1.5, ["a"], 1), ("ann", 1.5, ["a"], 1), ("bob", float("nan"), None, None)],
        [("ann", 1.5, ["a"], 1), ("bob", float("nan"), None, None), ("cem", None, [], 2)],
    ]
    for batch in batches:
        source.append(rows_of(batch, schema))
    source.delete("customer = 'cem'")
    source.update("customer = 'ann'", set={"price": "price + 1"})
    at_once, by_version = (
        catalog.create_table(f"db.t{next(_numbers)}", schema, properties=properties) for _ in range(2)
    )
    names = {"op": "_change_type", "order_by": ["_commit_version", "_commit_timestamp"]}
    feed = source.changes().to_arrow()
    at_once.apply_changes(feed, key=None, **names)
    for number in sorted(set(feed["_commit_version"].to_pylist())):
        by_version.apply_changes(feed.filter(pa.compute.equal(feed["_commit_version"], number)), key=None, **names)
    told = lambda table: Counter(map(str, table.refresh().scan().to_arrow().to_pylist()))  # noqa: E731
    assert told(at_once) == told(by_version) == told(source)
    assert sum(told(source).values()) == 5


def test_keyless_events_require_whole_rows(catalog: tf.Catalog) -> None:
    """CF-15"""
    table = new_table(catalog, [("a", 1, "x")], key=[])
    given = events_of([("a", 1, "x", "D", 1, None)]).drop(["number"])
    with pytest.raises(InvalidKeyError):
        table.apply_changes(given, order_by="day")
    with pytest.raises(InvalidArgumentError, match=r"lack columns of .*: item"):
        table.apply_changes(given.drop(["item"]), order_by="day", key=None)
    with pytest.raises(InvalidArgumentError, match="only supported with missing='error'"):
        table.apply_changes(given, order_by="day", key=None, missing="null")
    with pytest.raises(InvalidArgumentError, match="only supported with on_refused='fail'"):
        table.apply_changes(given, order_by="day", key=None, on_refused="divert")
    with pytest.raises(InvalidArgumentError, match="key='customer'"):
        table.apply_changes(given, order_by="day", key="customer")
    assert table.apply_changes(given, order_by="day", key=None, dry_run=True).deleted_row_count == 1
    assert stored(table) == Counter([("a", 1, "x")])


def debezium(*events: tuple[str, Any, Any, int | None]) -> pa.Table:
    """Op, before, after and lsn."""
    row = pa.struct([field.with_nullable(True) for field in SCHEMA])
    image = lambda values: None if values is None else dict(zip(SCHEMA.names, values, strict=True))  # noqa: E731
    return pa.table(
        {
            "op": [event[0] for event in events],
            "before": pa.array([image(event[1]) for event in events], row),
            "after": pa.array([image(event[2]) for event in events], row),
            "source": [{"lsn": event[3], "table": "orders"} for event in events],
            "ts_ms": [0 for _ in events],
        }
    )


def test_debezium_envelope(catalog: tf.Catalog) -> None:
    """CF-14: an update of the key deletes the old row; a tombstone has no effect."""
    table = new_table(catalog, [("a", 1, "old"), ("a", 2, "old"), ("b", 1, "old")])
    events = debezium(
        ("u", None, ("a", 1, "late"), 9),
        ("u", ("a", 1, "old"), ("a", 1, "new"), 7),
        ("u", ("a", 2, "old"), ("a", 9, "moved"), 8),
        ("d", ("b", 1, None), None, 10),
        (None, None, None, None),
        ("c", None, ("c", 1, "new"), 11),
        ("r", None, ("d", 1, "new"), 3),
    )
    expected = Counter([("a", 1, "late"), ("a", 9, "moved"), ("c", 1, "new"), ("d", 1, "new")])
    table.apply_changes(events, envelope="debezium")
    assert stored(table) == expected
    again = new_table(catalog, [("a", 1, "old"), ("a", 2, "old"), ("b", 1, "old")])
    wrapped = pa.table({"payload": events.to_struct_array(), "schema": ["" for _ in range(len(events))]})
    again.apply_changes(wrapped, envelope="debezium", order_by=["source.lsn"])
    assert stored(again) == expected
    table.apply_changes(debezium(("t", None, None, 12), ("c", None, ("e", 1, "new"), 13)), envelope="debezium")
    assert stored(table) == Counter([("e", 1, "new")])


def test_keyless_debezium_update_requires_both_images(catalog: tf.Catalog) -> None:
    """CF-14, CF-15"""
    table = new_table(catalog, [("a", 1, "old"), ("a", 1, "old")], key=[])
    table.apply_changes(debezium(("u", ("a", 1, "old"), ("a", 1, "new"), 1)), envelope="debezium", key=None)
    assert stored(table) == Counter([("a", 1, "old"), ("a", 1, "new")])
    with pytest.raises(InvalidArgumentError, match=r"op 'u' has no 'before'.*REPLICA IDENTITY"):
        table.apply_changes(debezium(("u", None, ("a", 1, "new"), 1)), envelope="debezium", key=None)


def test_incomplete_debezium_envelope_is_rejected(catalog: tf.Catalog) -> None:
    """CF-14"""
    table = new_table(catalog, [("a", 1, "old")])
    for given, options, message in (
        (debezium(("d", None, None, 1)), {}, "op 'd' has no 'before'"),
        (debezium(("c", None, None, 1)), {}, "op 'c' has no 'after'"),
        (debezium(("m", None, None, 1)), {}, "'m', which is not an operation"),
        (debezium(("c", None, ("a", 1, "x"), 1)).drop(["source"]), {}, "no column source with lsn or pos"),
        (debezium(("c", None, ("a", 1, "x"), 1)), {"order_by": "source.lns"}, "lns"),
        (debezium(("c", None, ("a", 1, "x"), 1)), {"envelope": "maxwell"}, "'maxwell' is not supported"),
        (pa.table({"op": ["c"], "after": ["{}"]}), {"order_by": None}, "'after' of the events is string"),
        (pa.table({"before": [None]}), {"order_by": None}, "op"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            table.apply_changes(given, **{"envelope": "debezium", **options})
    assert stored(table) == Counter([("a", 1, "old")])


@pytest.mark.parametrize("order_column", [False, True])
def test_delete_without_key_is_diverted(catalog: tf.Catalog, order_column: bool) -> None:
    """CP-24"""
    table = new_table(catalog, [("a", 1, "old"), ("a", 2, "old")])
    if order_column:
        table.set_properties({"tableformat.order-column": "item"})
    events = events_of(
        [
            ("a", 1, "x", "I", 1, None),
            ("a", None, "y", "D", 2, None),
            ("a", 2, "z", "D", 3, None),
            (None, 3, "z", "I", 4, None),
        ]
    ).drop(["number"])
    for options in ({}, {"dry_run": True}):
        with pytest.raises(RowsRefusedError):
            table.apply_changes(events, order_by="day", **options)
    result = table.apply_changes(events, order_by="day", on_refused="divert")
    assert result.refused is not None
    found = result.refused.select(["_row_index", "_refused_column", "customer"]).sort_by("_row_index").to_pylist()
    assert [tuple(row.values()) for row in found] == [(1, "order", "a"), (3, "customer", None)]
    assert stored(table) == Counter([("a", 1, "x")])


def test_deletes_may_omit_required_columns(catalog: tf.Catalog) -> None:
    """CF-12: columns outside the key; the image before a delete often has the key alone."""
    schema = pa.schema([("customer", pa.string()), pa.field("item", pa.string(), nullable=False)])
    table = catalog.create_table(f"db.t{next(_numbers)}", schema, key=["customer"])
    table.append(pa.table({"customer": ["ann", "bob"], "item": ["x", "y"]}, schema))
    events = [{"op": "d", "before": {"customer": "ann"}, "source": {"lsn": 3}}]
    table.apply_changes(pa.Table.from_pylist(events), envelope="debezium")
    assert table.refresh().scan().to_arrow()["customer"].to_pylist() == ["bob"]
    events[0]["before"]["custmer"] = "ann"
    with pytest.raises(UnknownColumnError):
        table.apply_changes(pa.Table.from_pylist(events), envelope="debezium")


@pytest.mark.parametrize(
    "places",
    [
        [("bin.000002", 4, 0), ("bin.000001", 900, 0), ("bin.000002", 4, 1)],
        [("bin.1000000", 4, 0), ("bin.999999", 900, 0), ("bin.1000000", 5, 0)],
        [("bin", 4, 0), ("bin", 3, 0), ("bin.1000000", 1, 0)],
        [("b.2", 4, 0), ("a.10", 900, 0), ("b.10", 1, 0)],
        [("copy2", 4, 0), ("copy10", 900, 0), ("copy2", 5, 0)],
        [(None, 9, 0), (None, 8, 0), ("bin.1", 1, 0)],
    ],
)
def test_events_of_mysql_are_ordered_by_file_and_position(
    catalog: tf.Catalog, places: list[tuple[str | None, int, int]]
) -> None:
    """CF-14: the third event is the last one."""
    table = new_table(catalog)
    events = [
        {"op": "c", "after": {"customer": "a", "order": 1, "item": item}, "source": {"file": f, "pos": p, "row": r}}
        for item, (f, p, r) in zip(("x", "y", "z"), places, strict=True)
    ]
    table.apply_changes(pa.Table.from_pylist(events), envelope="debezium")
    assert stored(table) == Counter([("a", 1, "z")])
