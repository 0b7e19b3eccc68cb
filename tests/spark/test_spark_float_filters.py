"""NaN and both zeros in filters, for files of any writer: row groups are ruled out by Parquet's rules for float
statistics."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tableformat import Catalog, Table
from tableformat.testing.key_order import sort_key

NAN = math.nan
FILES: tuple[tuple[float | None, ...], ...] = (
    (1.0, NAN, 1.0),
    (None, NAN, -0.0),
    (-5.0, 0.0, -5.0),
    (0.0, 5.0, 0.0),
    (5.0, -0.0, 5.0),
    (NAN, NAN),
    (0.0,),
    (-0.0,),
    (7.0, None),
)
"""One row group each, with a dictionary."""
COMPARISONS: dict[str, Callable[[object, object], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
    "<>": operator.ne,
}
LITERALS = (-0.0, 0.0, 5.0, NAN)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("v", pa.float64()),
        ("inside", pa.struct([("v", pa.float32())])),
    ]
)


def by_python(table: Table, _spark: SparkSession, rows: list[tuple[int, float | None]]) -> None:
    found = [{"id": number, "v": value, "inside": {"v": value}} for number, value in rows]
    table.append(pa.Table.from_pylist(found, schema=SCHEMA))


def by_spark(table: Table, spark: SparkSession, rows: list[tuple[int, float | None]]) -> None:
    told = ", ".join(
        f"({number}, {literal(value, 'double')}, named_struct('v', {literal(value, 'float')}))"
        for number, value in rows
    )
    spark.sql(f"INSERT INTO lake.{table.name} VALUES {told}")


def literal(value: float | None, kind: str) -> str:
    return f"CAST({'NULL' if value is None else repr(str(value))} AS {kind})"


@pytest.mark.parametrize("write", [pytest.param(by_python, marks=pytest.mark.long), by_spark])
def test_float_filters_keep_all_matching_rows(
    spark: SparkSession,
    lake: Catalog,
    namespace: str,
    write: Callable[[Table, SparkSession, list[tuple[int, float | None]]], None],
) -> None:
    """SP-88: NaN is above all others, and both zeros are equal."""
    table = lake.create_table((namespace, "t"), SCHEMA)
    values: dict[int, float | None] = {}
    for file in FILES:
        rows = list(enumerate(file, start=len(values)))
        write(table, spark, rows)
        values |= dict(rows)
    known = {number: value for number, value in values.items() if value is not None}

    def found(condition: str) -> set[int]:
        return {row.id for row in spark.sql(f"SELECT id FROM lake.{table.name} WHERE {condition}").collect()}

    for number, (sign, compare) in enumerate(COMPARISONS.items()):
        for place, bound in enumerate(LITERALS):
            column, kind = (("v", "double"), ("inside.v", "float"))[(number // 2 + place) % 2]
            condition = f"{column} {sign} {literal(bound, kind)}"
            matching = {each for each, value in known.items() if compare(sort_key(value), sort_key(bound))}
            if number % 2:
                condition, matching = f"NOT ({condition})", known.keys() - matching
            assert found(condition) == matching, condition
    zeros = {each for each, value in known.items() if value == 0}
    for zero in ("-0.0D", "0.0D"):
        assert found(f"NOT (v <=> {zero})") == values.keys() - zeros
        assert found(f"v IN ({zero}, 7.0D)") == zeros | {each for each, value in known.items() if value == 7}
        assert found(f"v > 5.0D AND id >= 0 OR v = {zero}") == zeros | {
            each for each, value in known.items() if math.isnan(value) or value == 7
        }
