"""`get` and `get_many`: rows by their keys, with all deletes applied."""

from __future__ import annotations

import datetime as dt
import decimal
import random
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import (
    DuplicateKeyError,
    InvalidArgumentError,
    InvalidKeyError,
    RowsRefusedError,
    UnknownColumnError,
)

SCHEMA = pa.schema([("note", pa.string()), ("id", pa.string()), ("n", pa.int32())])
Key = tuple[str, int]


def rows(keys: list[Key], note: str) -> pa.Table:
    return pa.Table.from_pylist([{"note": note, "id": id_, "n": n} for id_, n in keys], SCHEMA)


def as_keys(keys: list[Key]) -> pa.Table:
    return pa.table({"n": [n for _, n in keys], "id": [id_ for id_, _ in keys]}).cast(
        pa.schema([("n", pa.int32()), ("id", pa.string())])
    )


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", SCHEMA, key=["id", "n"])
    for step, first in enumerate("abcd"):
        table.append(rows([(first, n) for n in range(10)], f"file {step}"))
    table.delete_prefix({"id": "b"})
    table.upsert(rows([("a", 3), ("b", 4)], "upserted"))
    table.delete("id = 'c' AND n < 5", mode="scan")
    return table


def test_get_applies_every_kind_of_delete(table: tf.Table) -> None:
    assert table.get(("a", 3)) == {"note": "upserted", "id": "a", "n": 3}
    assert table.get({"n": 4, "id": "b"}) == {"note": "upserted", "id": "b", "n": 4}
    assert table.get(["c", 5]) == {"note": "file 2", "id": "c", "n": 5}
    assert [table.get(key) for key in [("b", 5), ("c", 4), ("a", 10), ("aa", 3)]] == [None] * 4


def test_get_many_agrees_with_get_in_key_order(table: tf.Table) -> None:
    keys = [(id_, n) for id_ in "eabcd" for n in range(-1, 11)] + [("a", 3), ("d", 0)]
    random.Random(7).shuffle(keys)
    expected = [row for key in keys if (row := table.get(key)) is not None]
    found = table.get_many(as_keys(keys))
    assert found.schema == table.schema
    assert found.to_pylist() == expected
    assert len(expected) == 10 + 1 + 5 + 10 + 2
    assert table.get_many(as_keys(keys).to_reader()).equals(found)


def test_get_rejects_duplicate_stored_key(table: tf.Table) -> None:
    table.append(rows([("d", 1)], "again"))
    with pytest.raises(DuplicateKeyError):
        table.get(("d", 1))
    assert sorted(table.get_many(as_keys([("d", 1)]))["note"].to_pylist()) == ["again", "file 3"]


def test_invalid_lookup_keys_are_rejected(table: tf.Table) -> None:
    for key in [("a",), ("a", 1, 2), "a", {"id": "a"}, ("a", None)]:
        with pytest.raises(InvalidArgumentError):
            table.get(key)
    with pytest.raises(UnknownColumnError):
        table.get({"id": "a", "note": 1})
    with pytest.raises(InvalidKeyError):
        table.get(("a", "one"))
    with pytest.raises(UnknownColumnError):
        table.get_many(as_keys([("a", 1)]).append_column("note", pa.array(["x"])))
    with pytest.raises(InvalidArgumentError, match="columns id, n"):
        table.get_many(as_keys([("a", 1)]).select(["id"]))
    with pytest.raises(RowsRefusedError):
        table.get_many(pa.table({"id": ["a"], "n": pa.array([None], pa.int32())}))


def test_lookup_requires_a_key(tmp_path: Path) -> None:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", SCHEMA)
    with pytest.raises(InvalidKeyError):
        table.get(("a", 1))
    with pytest.raises(InvalidKeyError):
        table.get_many(as_keys([("a", 1)]))


def test_lookup_by_keys_of_every_type(tmp_path: Path) -> None:
    values: dict[str, tuple[pa.DataType, Any]] = {
        "u": (pa.uuid(), uuid.UUID(int=2**127)),
        "d": (pa.decimal128(9, 2), decimal.Decimal("-2.00")),
        "f": (pa.binary(3), b"\xff\x00c"),
        "o": (pa.binary(), b"\xff"),
        "t": (pa.timestamp("us", "UTC"), dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC)),
        "day": (pa.date32(), dt.date(1969, 1, 2)),
        "b": (pa.bool_(), True),
    }
    catalog = new_lake(tmp_path / "lake")
    schema = pa.schema([(name, kind) for name, (kind, _) in values.items()])
    table = catalog.create_table("db.t", schema, key=list(values))
    key = {name: value for name, (_, value) in values.items()}
    stored = pa.table(
        {name: pa.array([value.bytes if name == "u" else value], kind) for name, (kind, value) in values.items()}
    )
    table.append(stored)
    assert table.get(key) == key
    assert table.get({**key, "d": decimal.Decimal("2.00")}) is None
    assert table.get_many(stored).to_pylist() == [key]


def test_lookup_of_few_keys_uses_bloom_filters(tmp_path: Path) -> None:
    """FM-27: files that hold none of the keys are not planned, once their filters were read."""
    catalog = new_lake(tmp_path / "lake")
    name = "write.parquet.bloom-filter-{}.column.id"
    properties = {name.format("enabled"): "true", name.format("fpp"): "0.0001"}
    table = catalog.create_table("db.t", SCHEMA, key=["id", "n"], properties=properties)
    for file in range(8):
        table.append(rows([(f"k{number:03}", number) for number in range(file, 400, 8)], f"file {file}"))
    wanted = [("k100", 100), ("k301", 301), ("k100", 3)]
    for _ in range(2):
        assert table.get_many(as_keys(wanted))["note"].to_pylist() == ["file 4", "file 5"]
    assert table.scan("id IN ('k100', 'k301')").explain().pruning["skipped_by_bloom_filter_count"] == 6


def test_rows_with_uuid_in_struct_are_found(tmp_path: Path) -> None:
    """PyArrow makes no empty table and no null of such a type from Python: lookups, partial upserts and the listing of
    deleted positions stopped with its error."""
    catalog = new_lake(tmp_path / "lake")
    inner = pa.struct([("u", pa.uuid())])
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", inner), ("n", pa.int64())])
    table = catalog.create_table("db.t", schema, key=["id"])
    one = uuid.UUID(int=1)
    stored = pa.StructArray.from_arrays([pa.array([one.bytes] * 3, pa.uuid())], ["u"])
    table.append(pa.table({"id": [0, 1, 2], "s": stored, "n": [0, 1, 2]}))
    assert table.get_many(pa.table({"id": [2, 3]})).to_pylist() == [{"id": 2, "s": {"u": one}, "n": 2}]
    assert table.get_many(pa.table({"id": pa.array([], pa.int64())})).num_rows == 0
    table.upsert(pa.table({"id": [2, 7], "n": [9, 9]}), missing="keep")
    assert [row["s"] for row in table.get_many(pa.table({"id": [2, 7]})).to_pylist()] == [{"u": one}, None]
    table.delete("n = 1", mode="scan")
    assert set(table.inspect.position_deletes()["row"].to_pylist()) == {None}
