"""Arguments that no caller intends, and some valid ones, for every parameter of the public interface."""

# ruff: noqa: E501 -- tables of values

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from pyiceberg.expressions import AlwaysFalse, EqualTo, GreaterThan, Not, Or

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("at", pa.timestamp("us"), nullable=False),
        pa.field("name", pa.string()),
        pa.field("score", pa.float64()),
        pa.field("place", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
    ]
)
DAY = dt.datetime(2026, 1, 2)


def rows(*ids: int, at: dt.datetime = DAY, name: str = "a") -> pa.Table:
    columns = {
        "id": list(ids),
        "at": [at] * len(ids),
        "name": [name] * len(ids),
        "score": [0.5] * len(ids),
        "place": [{"city": "x", "zip": 1}] * len(ids),
    }
    return pa.table(columns, schema=SCHEMA)


def closed_reader() -> pa.RecordBatchReader:
    reader = rows(1).to_reader()
    reader.close()
    return reader


class SourceFailedError(Exception):
    """The error of a caller's reader or function, which the library passes on unchanged."""


def failing_reader() -> pa.RecordBatchReader:
    def batches() -> Any:
        yield rows(90).to_batches()[0]
        raise SourceFailedError

    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


def failing_callback(*_arguments: Any, **_keywords: Any) -> None:
    """A caller's function; its error is passed on unchanged."""
    raise SourceFailedError


def nested_list(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def casts(depth: int) -> str:
    return "CAST(" * depth + "id" + " AS BIGINT)" * depth + " = 1"


SCALARS = (
    None, True, False, 0, 1, -1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**40, 0.0, 1.5, -0.0,
    math.nan, math.inf, -math.inf, 1e308, Decimal("1.5"), Decimal("NaN"), Decimal(10) ** 60, 1j, b"", b"\xff\x00",
    "", " ", "a", "id", "ID", "nope", "place.city", "place.", ".", "..", "/", "\x00", "a\x00b", "\ud800", "é" * 300,
    "x" * 5_000, "db.t", "db.u", "main", "ingest", "tag", "1", "-1", "2026-01-02", "0001-01-01", "9999-12-31T23:59:59",
    dt.datetime.min, dt.datetime.max, dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=14))),
    dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=14))), dt.date.min, dt.date.max, dt.time(1),
    dt.timedelta.max, DAY, object(), failing_callback, ..., NotImplemented,
)  # fmt: skip
CONTAINERS = (
    (), [], {}, set(), frozenset({1}), [None], ["id"], ["id", "id"], ["nope"], ["at"], ["id", "at"], [1], (1,), (1, DAY),
    (None,), ("a",), (math.nan,), (2**70,), (1, dt.datetime.max), (1, DAY, 3), ["\ud800"], [""], [[]], nested_list(50),
    nested_list(2_000), {"id": 1}, {"id": 1, "at": DAY}, {"id": None}, {"at": DAY}, {"nope": 1}, {"id": "a"}, {"id": 2**70},
    {"id": math.nan}, {1: 1}, {None: None}, {"": ""}, {"a": 1}, {"a": "b"}, {"\ud800": "x"}, {"x": "\ud800"}, range(3),
    {"format-version": "1"}, {"format-version": "99999"}, {"write.target-file-size-bytes": "x"}, {"write.data.path": "\x00"},
    {"tableformat.key-field-ids": "x"}, {"tableformat.key-field-ids": "99"}, {"tableformat.check.c": "x"},
    {"schema.name-mapping.default": "["}, {"write.data.path": ""}, {"write.metadata.path": "nope://x"},
    {"tableformat.publish-target.ingest": "nowhere"}, {"tableformat.txn.main.a": "["},
    ("db", "t"), ("db", None), ("db", 1), ("db", ""), ("db", "u"), ("", "t"), ("db", "x/../y"), ("a",) * 30,
)  # fmt: skip
FILTERS = (
    "id = 1", "id > 'a'", "nope = 1", "id = 1 AND", "1", "NULL", "TRUE", "id", "name", "id = id", "id IN ()", "id IN (1, NULL)",
    "name LIKE '%a%'", "name = '\ud800'", "name = 'a\x00'", "score = 'NaN'::DOUBLE", "id = 99999999999999999999999",
    "at > TIMESTAMP '9999-12-31 23:59:59.999999'", "at < TIMESTAMP '0001-01-01'", "at = DATE '294247-01-10'",
    "place = 1", "place IS NULL", "place.city = 'x'", "place.nope = 1", "SELECT 1", "id = 1; DROP TABLE t",
    "id = (SELECT 1)", "random() < 1", "name = ''", "score / 0 > 1", "score > 1e400", "id = 1.5", "NOT (id = 1)",
    casts(3_000), casts(100), "NOT " * 3_000 + "id = 1", "(" * 3_000 + "id = 1" + ")" * 3_000,
    " OR ".join(["id = 1"] * 3_000), "id IN (" + ", ".join(map(str, range(5_000))) + ")", "-" * 3_000 + "1 = id",
    EqualTo("id", 1), EqualTo("nope", 1), EqualTo("id", "a"), GreaterThan("name", 1), Not(EqualTo("place", 1)),
    Or(EqualTo("id", 1), AlwaysFalse()), EqualTo("id", 2**70), EqualTo("score", math.inf),
)  # fmt: skip


def _tables() -> tuple[Any, ...]:
    far = rows(1).set_column(1, SCHEMA.field("at"), pa.array([2**62], pa.timestamp("us")))
    return (
        rows(), rows(1), rows(5, 6), rows(5, 5), rows(7, at=dt.datetime.min), rows(7, at=dt.datetime.max), far,
        rows(8, name="\x00"), rows(1).select(["id"]), rows(1).select(["at"]), rows(1).drop(["name"]),
        pa.table({}), pa.table({"id": pa.array([], pa.null())}), pa.table({"nope": [1]}), pa.table({"id": ["a"]}),
        pa.table({"id": [None], "at": [DAY]}), pa.table([[1], [2]], names=["id", "id"]), pa.table({"id": [[1]]}),
        rows(1).append_column("more", pa.array([1])), rows(1).append_column("id", pa.array([1])),
        pa.table({"id": pa.array([1], pa.uint64()), "at": pa.array([1], pa.date32())}),
        pa.table({"id": pa.array([2**64 - 1], pa.uint64()), "at": [DAY]}), pa.table({"": [1]}), pa.table({"\x00": [1]}),
        pa.table({"id": pa.array(["1"]).dictionary_encode(), "at": [DAY]}), pa.table({"id": pa.array([1], pa.int64()).cast(pa.float16())}),
        rows(9).append_column("_op", pa.array(["insert"])).append_column("_ts", pa.array([1])),
        rows(9).append_column("_op", pa.array(["?"])).append_column("_ts", pa.array([1])),
        rows(9).append_column("_op", pa.array([1])).append_column("_ts", pa.array([[1]])),
        rows(9).append_column("_op", pa.array([None], pa.string())).append_column("_ts", pa.array([math.nan])),
        SCHEMA, pa.schema([]), pa.schema([("a", pa.int8()), ("a", pa.int8())]), pa.schema([("", pa.int8())]),
        pa.schema([("u", pa.union([pa.field("x", pa.int8())], "dense"))]), pa.schema([("d", pa.decimal256(60, 2))]),
        pa.schema([("x", pa.month_day_nano_interval())]), pa.schema([("f", pa.float16()), ("t", pa.time32("s"))]),
        pa.schema([("\x00", pa.int8())]), pa.schema([("m", pa.map_(pa.string(), pa.null()))]),
        pa.schema([("n", pa.timestamp("ns")), ("d", pa.duration("s"))]), pa.int64(), pa.array([1]), rows(1).to_batches()[0],
    )  # fmt: skip


TABLES = _tables()
READERS = (closed_reader, failing_reader, lambda: rows(1).to_reader(), lambda: iter([1]), lambda: iter(()))
PARTITIONS = (
    ["id"], ["bucket(4, id)"], ["bucket(0, id)"], ["bucket(99999999999, id)"], ["day(at)"], ["hour(at)"], ["year(at)", "month(at)"],
    ["truncate(3, name)"], ["truncate(3, score)"], ["bucket(²,id)"], ["day(id)"], ["nope(id)"], ["identity(id"], ["place"],
    ["bucket(1, place.city)"], ["id", "id"], ["void(id)"], "id", [1], [None], ["\x00"],
)  # fmt: skip
PATHS = ("", "/", "/proc/version/x", "/dev/null/x", "\x00", "a\x00b", "x" * 5_000, "\ud800/x", "nope://x/y", "s3://", "s3:///",
         "file://", "~nobody/x", "./", 5, None, b"x", "http://x", "/proc/1/mem.metadata.json", "memory:///x")  # fmt: skip
WORDS = (
    "append", "replace", "error", "ignore", "allow", "fail", "divert", "auto", "scan", "range", "equality", "binpack", "sort",
    "_op", "_ts", "compact", "convert_deletes",
)  # fmt: skip

_ANYTHING = st.one_of(st.sampled_from(SCALARS), st.sampled_from(CONTAINERS), st.sampled_from(TABLES))
_LIKELY: dict[str, Any] = {
    "where": st.sampled_from(FILTERS),
    "rows": st.one_of(st.sampled_from(TABLES), st.sampled_from(READERS).map(lambda make: make())),
    "changes": st.sampled_from(TABLES),
    "keys": st.sampled_from(TABLES),
    "prefix": st.one_of(st.sampled_from(CONTAINERS), st.sampled_from(TABLES)),
    "schema": st.sampled_from(TABLES),
    "partition_by": st.sampled_from(PARTITIONS),
    "columns": st.sampled_from(CONTAINERS),
    "properties": st.sampled_from(CONTAINERS),
    "identifier": st.sampled_from(("db.t", "db.u", ("db", "u"), "nope.t", "db", "db.v")),
    "location": st.sampled_from(PATHS),
    "metadata_location": st.sampled_from(PATHS),
    "name_or_path": st.sampled_from(PATHS),
    "branch": st.sampled_from(("main", "ingest", "nope", "tag")),
    "tag": st.sampled_from(("main", "tag", "nope")),
    "mode": st.sampled_from(WORDS),
    "kind": st.sampled_from(WORDS),
    "on_duplicate": st.sampled_from(WORDS),
    "on_refused": st.sampled_from(WORDS),
    "strategy": st.sampled_from(WORDS),
}


def argument(name: str) -> st.SearchStrategy[Any]:
    """Values for a parameter with that name: mostly of its type, if it has one."""
    likely = _LIKELY.get(name)
    return _ANYTHING if likely is None else st.one_of(likely, likely, _ANYTHING)
