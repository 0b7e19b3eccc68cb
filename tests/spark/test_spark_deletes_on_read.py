"""SELECT applies every kind of delete."""

from __future__ import annotations

import json
import math
import random
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from long_forms import every
from pyiceberg.types import UUIDType
from pyspark.sql import SparkSession

from tableformat import Catalog, Table
from tableformat.errors import InvalidKeyError
from tableformat.testing.key_order import fingerprint
from tableformat.testing.table_builder import build

CORPUS = {
    f"{path.stem}:{case['title']}": case
    for path in sorted((Path(__file__).parents[2] / "specs" / "corpus").glob("*.json"))
    for case in json.loads(path.read_text())
    if "read_error" not in case
}

SCHEMA = pa.schema(
    [pa.field("id1", pa.string(), nullable=False), pa.field("id2", pa.int64(), nullable=False), ("v", pa.float64())]
)


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Twelve rows in two files: a1..a6 and b1..b6."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["id1", "id2"])
    for letter in "ab":
        created.append(pa.table({"id1": [letter] * 6, "id2": np.arange(1, 7), "v": np.arange(6) / 2}, schema=SCHEMA))
    return created


def rows(spark: SparkSession, table: Table, where: str = "true") -> list[str]:
    """The keys that Spark sees, such as "a1"."""
    found = spark.sql(f"SELECT id1, id2 FROM lake.{table.name} WHERE {where}").collect()
    return sorted(f"{row.id1}{row.id2}" for row in found)


def python_rows(table: Table) -> list[str]:
    found = table.refresh().scan(columns=["id1", "id2"]).to_arrow().to_pylist()
    return sorted(f"{row['id1']}{row['id2']}" for row in found)


def test_all_delete_kinds_apply_and_later_rows_stay(spark: SparkSession, table: Table) -> None:
    table.delete("v = 0", mode="scan")
    table.delete("id2 = 2", mode="equality")
    table.delete_prefix({"id1": "b", "id2": 3})
    table.append(pa.table({"id1": ["b", "b"], "id2": [3, 2], "v": [9.0, 9.0]}, schema=SCHEMA))
    assert rows(spark, table) == ["a3", "a4", "a5", "a6", "b2", "b3", "b4", "b5", "b6"] == python_rows(table)


def test_row_written_with_its_range_delete_stays_visible(spark: SparkSession, table: Table) -> None:
    """RD-2: strictly older data only."""
    table.replace(pa.table({"id1": ["a"], "id2": [4], "v": [1.0]}, schema=SCHEMA), prefix=["id1"])
    assert rows(spark, table, "id1 = 'a'") == ["a4"]


def test_converted_deletes_give_the_same_rows(spark: SparkSession, table: Table) -> None:
    table.delete("id2 = 2", mode="equality")
    table.delete_prefix({"id1": "b", "id2": 3})
    before = rows(spark, table)
    table.maintenance.convert_deletes()
    assert rows(spark, table) == before


def test_delete_columns_need_not_be_selected(spark: SparkSession, table: Table) -> None:
    table.delete("id2 = 6", mode="equality")
    assert spark.sql(f"SELECT sum(v) FROM lake.{table.name}").collect()[0][0] == 2 * (0 + 0.5 + 1 + 1.5 + 2)


def test_file_of_many_row_groups_in_several_splits(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """Row positions count from the start of the file, also in a split that begins in its middle."""
    row_count = 40_000
    created = lake.create_table(
        (namespace, "wide"), SCHEMA, key=["id1", "id2"], properties={"write.parquet.row-group-limit": "1000"}
    )
    created.append(
        pa.table(
            {"id1": ["x"] * row_count, "id2": np.arange(row_count), "v": np.random.default_rng(1).random(row_count)},
            schema=SCHEMA,
        )
    )
    created.delete_range(lower=("x", 500), upper=("x", 20_500))
    created.delete("id2 = 39999", mode="equality")
    created.delete("id2 IN (7, 14, 30000)", mode="scan")
    previous = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.openCostInBytes", "1")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "50000")
    try:
        frame = spark.table(f"lake.{created.name}")
        assert frame.rdd.getNumPartitions() > 2
        assert frame.selectExpr("count(*)", "sum(id2)").collect()[0] == (
            19_996,
            sum(range(500)) + sum(range(20_500, row_count)) - 7 - 14 - 30_000 - 39_999,
        )
        assert frame.where("id2 = 30001").select("_pos").collect()[0][0] == 30_001
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", previous)
        spark.conf.unset("spark.sql.files.openCostInBytes")


@pytest.mark.parametrize("name", every(4, CORPUS, 1))
def test_the_corpus(spark: SparkSession, lake: Catalog, namespace: str, name: str) -> None:
    """Executors and Python implement the rules of deletes separately: both return the same rows."""
    table = build(lake, CORPUS[name], identifier=f"{namespace}.t").table
    expected = table.scan().to_arrow()
    uuids = {field.name for field in table.metadata.schema().fields if isinstance(field.field_type, UUIDType)}
    found = [
        {column: uuid.UUID(value).bytes if column in uuids and value else value for column, value in row.items()}
        for row in spark.table(f"lake.{namespace}.t").toArrow().to_pylist()
    ]
    assert fingerprint(found, expected.column_names) == fingerprint(expected.to_pylist(), expected.column_names)


_STRINGS = ["", "\x00", "a", "a\x00", "a\x00b", "ab", "\uffff", "\U00010000", "é", "x" * 300]
_FLOATS = [-math.inf, -1.5, -0.0, 0.0, 5e-324, 1.5, math.inf, math.nan]
_VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [False, True]),
    "int": (pa.int32(), [-(2**31), -1, 0, 1, 255, 256, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), -1, 0, 1, 2**32, 2**63 - 1]),
    "float": (pa.float32(), [float(np.float32(value)) for value in _FLOATS if value != 5e-324]),
    "double": (pa.float64(), _FLOATS),
    "small_decimal": (pa.decimal128(9, 2), [Decimal("-9999999.99"), Decimal("-0.01"), Decimal(0), Decimal("1.25")]),
    "middle_decimal": (pa.decimal128(18, 3), [Decimal("-1e14"), Decimal("-0.001"), Decimal(0), Decimal("1e14")]),
    "large_decimal": (pa.decimal128(38, 10), [Decimal("-1e27"), Decimal("-1e-10"), Decimal(0), Decimal("1e20")]),
    "string": (pa.string(), _STRINGS),
    "binary": (pa.binary(), [text.encode() for text in _STRINGS] + [b"\xff", b"\x00\xff", b"\x00\x01"]),
    "fixed": (pa.binary(3), [b"\x00\x00\x00", b"\x00\xff\x00", b"abc", b"\xff\xff\xff"]),
    "date": (pa.date32(), [date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(1970, 1, 1), date(9999, 1, 1)]),
    "timestamp": (
        pa.timestamp("us"),
        [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 1, 1)],
    ),
    "timestamptz": (pa.timestamp("us", "UTC"), [datetime(1500, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)]),
    "time": (pa.time64("us"), [time(0), time(1, 2, 3, 4), time(23, 59, 59, 999999)]),
    "uuid": (
        pa.uuid(),
        [uuid.UUID(int=0), uuid.UUID(int=1 << 127), uuid.UUID(int=(1 << 127) - 1), uuid.UUID(int=(1 << 128) - 1)],
    ),
}


@pytest.mark.parametrize("kind", _VALUES)
def test_keys_of_every_type(spark: SparkSession, lake: Catalog, namespace: str, kind: str) -> None:
    """RD-4, DA-4, RD-11: keys of each type are compared alike in Java and in Python: in files that are sorted by them
    or not, with several row groups, with nulls or without."""
    if kind == "time" and tuple(map(int, spark.version.split(".")[:2])) < (4, 1):
        pytest.skip("Spark has no type for times of day")
    arrow_type, values = _VALUES[kind]
    chance = random.Random(kind)
    for key in (["row"],) if arrow_type in {pa.float32(), pa.float64()} else (["k", "n"], ["row"]):
        is_sorted = key[0] == "k"
        columns = [pa.field("k", arrow_type, not is_sorted), pa.field("n", pa.int64(), not is_sorted)]
        schema = pa.schema([*columns, pa.field("row", pa.int64(), nullable=False), ("filler", pa.binary())])
        nulls = [] if is_sorted else [None]
        rows = [(value, number) for value in [*nulls, *values] for number in [*nulls, 1, 2, 3]]
        filler = [chance.randbytes(200_000 // len(rows)) for _ in rows]
        table = lake.create_table(
            (namespace, f"by_{key[0]}"), schema, key=key, properties={"write.parquet.row-group-limit": "4"}
        )
        for has_filler in (True, False):
            chance.shuffle(rows)
            fillers = filler if has_filler else [b""] * len(rows)
            table.append(pa.table([*zip(*rows, strict=True), range(len(rows)), fillers], schema=schema))
            _delete_between(table, *chance.sample(values, 2))
        if arrow_type not in {pa.float32(), pa.float64()}:
            point = chance.choice([*nulls, *values])
            table.delete_rows(pa.table({"k": pa.array([point], arrow_type), "n": pa.array([2], pa.int64())}))
        left = sorted(table.scan(columns=["row"]).to_arrow().column("row").to_pylist())
        assert len(left) < 2 * len(rows)
        # A filter that skips row groups, then a read that compares all keys, then one that knows the positions.
        for where in ("row < 3", "true", "true"):
            found = spark.sql(f"SELECT row, _file FROM lake.{table.name} WHERE {where}").toArrow()["row"].to_pylist()
            assert sorted(found) == [row for row in left if where == "true" or row < 3]


def _delete_between(table: Table, one: Any, other: Any) -> None:
    """A range delete between two keys, the lower one first."""
    for lower, upper in (((one, 2), (other, 2)), ((other, 2), (one, 2))):
        try:
            table.delete_range(lower=lower, upper=upper, on=["k", "n"])
        except InvalidKeyError:
            continue
        return
