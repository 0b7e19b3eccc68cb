"""Expressions of Polars and pyarrow as `where=`: the library selects the same rows as Polars and pyarrow."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from new_lakes import new_lake
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.schema import Schema

import tableformat as tf
from tableformat.errors import InvalidPredicateError, UnknownColumnError
from tableformat.filters.predicate import parse_where
from tableformat.metadata.arrow_schema import iceberg_schema

AT = dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC)
ROWS = pa.table(
    {
        "row": pa.array(range(5), pa.int64()),
        "i": pa.array([1, 2, None, -1, 3], pa.int32()),
        "s": ["ab", "b", None, "", "a"],
        "x": [1.5, math.nan, None, -0.0, 2.0],
        "flag": [True, False, None, True, False],
        "day": pa.array([dt.date(2026, 1, 2), dt.date(1969, 1, 1), None, None, dt.date(2026, 2, 2)]),
        "at": pa.array([AT, None, AT + dt.timedelta(1), None, None], pa.timestamp("us", "UTC")),
        "price": pa.array([1, 2, None, 3, 4], pa.decimal128(9, 2)),
        "raw": [b"\xff", b"", None, b"a", b"b"],
        "of": pa.array([{"n": 1}, {"n": 2}, None, {"n": None}, {"n": 1}], pa.struct([("n", pa.int64())])),
    }
)
COLUMN = {name: pl.col(name) for name in ROWS.column_names}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tf.Table:
    catalog = new_lake(tmp_path_factory.mktemp("polars") / "lake")
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    return table


def rows_of(table: tf.Table, where: Any) -> list[int]:
    found: list[int] = sorted(table.scan(where=where).to_arrow().column("row").to_pylist())
    return found


FILTERS: list[pl.Expr] = [
    (COLUMN["i"] > 1) | (COLUMN["s"] == "ab"),
    ~((COLUMN["i"] > 1) & (COLUMN["s"] == "b")),
    COLUMN["i"] >= 2,
    COLUMN["i"].is_in([1, 3]),
    ~COLUMN["i"].is_in([1, 3]),
    COLUMN["s"].is_in(pl.Series(["a", "b"])),
    COLUMN["i"].is_between(1, 3, closed="left"),
    COLUMN["i"].is_between(-1, 1),
    COLUMN["i"].is_null(),
    COLUMN["i"].is_not_null().not_(),
    COLUMN["s"].str.starts_with("a"),
    ~COLUMN["s"].str.starts_with("a"),
    COLUMN["x"] > 1.5,
    ~(COLUMN["x"] > 1.5),
    COLUMN["x"] != 1.5,
    COLUMN["x"] == 0.0,
    COLUMN["x"].is_nan(),
    COLUMN["x"].is_not_nan(),
    COLUMN["flag"],
    ~COLUMN["flag"],
    COLUMN["day"] >= dt.date(2026, 1, 2),
    COLUMN["at"] > AT,
    COLUMN["at"] <= AT,
    COLUMN["price"] == Decimal("3.00"),
    COLUMN["raw"] == b"\xff",
    COLUMN["of"].struct.field("n") == 1,
    pl.all_horizontal(COLUMN["i"] > 0, COLUMN["x"] > 0),
    pl.any_horizontal(COLUMN["i"] > 2, COLUMN["flag"]),
    pl.lit(True),
]


@pytest.mark.parametrize("where", FILTERS, ids=str)
def test_polars_expressions_select_the_same_rows(table: tf.Table, where: pl.Expr) -> None:
    expected = pl.DataFrame(ROWS).filter(where)["row"].to_list()
    assert rows_of(table, where) == expected


@pytest.mark.parametrize(
    "where",
    [
        COLUMN["i"] + 1 > 2,
        COLUMN["i"] > COLUMN["row"],
        COLUMN["i"].eq(pl.lit(None)),
        COLUMN["x"].gt(pl.lit(math.nan)),
        COLUMN["i"].eq_missing(3),
        COLUMN["i"].is_in([1, None]),
        COLUMN["i"].is_in([]),
        COLUMN["s"].str.ends_with("b"),
        COLUMN["i"].cast(pl.Int8) == 1,
        pl.col("i", "row") > 1,
        COLUMN["i"].max() > 1,
        pl.lit(1),
    ],
    ids=str,
)
def test_untranslatable_polars_expressions_are_rejected(table: tf.Table, where: pl.Expr) -> None:
    with pytest.raises(InvalidPredicateError):
        table.scan(where=where)


ARROW_FILTERS: list[pc.Expression] = [
    (pc.field("i") > 1) | (pc.field("s") == "ab"),
    ~(pc.field("i") > 1),
    pc.field("i").isin([1, 3]),
    pc.field("i").is_null(),
    pc.starts_with(pc.field("s"), "a"),
    pc.field("x") > 1.0,
    ~(pc.field("x") > 1.0),
    ~(pc.field("x") <= 1.5),
    pc.field("x") != 1.5,
    ~(pc.field("x") != 1.5),
    ~(pc.field("x") == 1.5),
    pc.field("x") == 0.0,
    pc.field("of", "n") == 1,
    pc.field("flag"),
    pc.field("at") <= pa.scalar(AT, pa.timestamp("us", "UTC")),
]


@pytest.mark.parametrize("where", ARROW_FILTERS, ids=str)
def test_arrow_expressions_select_the_same_rows(table: tf.Table, where: pc.Expression) -> None:
    assert rows_of(table, where) == sorted(ROWS.filter(where).column("row").to_pylist())


FLOATS = pa.array([0.1, 0.5, 3.0, None], pa.float32())


@pytest.fixture(scope="module")
def floats(tmp_path_factory: pytest.TempPathFactory) -> tf.Table:
    catalog = new_lake(tmp_path_factory.mktemp("floats") / "lake")
    table = catalog.create_table("db.t", pa.schema([("row", pa.int64()), ("f", pa.float32())]))
    table.append(pa.table({"row": range(4), "f": FLOATS}))
    return table


@pytest.mark.parametrize(
    "make",
    [
        lambda f: f == 0.1,
        lambda f: f > 0.1,
        lambda f: f <= pl.lit(0.1, dtype=pl.Float32),
        lambda f: pl.lit(0.5, dtype=pl.Float64) < f,
        lambda f: f.is_in([0.5, 3.0]),
        lambda f: f.is_in(pl.Series([0.1], dtype=pl.Float32)),
        lambda f: f.is_between(0.1, 0.5),
    ],
)
def test_float32_columns_are_compared_with_float32_literals(
    floats: tf.Table, make: Callable[[pl.Expr], pl.Expr]
) -> None:
    where = make(pl.col("f"))
    held = pl.DataFrame({"row": [*range(4)], "f": FLOATS.to_pylist()}, schema={"row": pl.Int64, "f": pl.Float32})
    assert rows_of(floats, where) == sorted(held.filter(where)["row"].to_list()) != []


@pytest.mark.parametrize(
    "make",
    [
        lambda f: f == pl.lit(0.1, dtype=pl.Float64),
        lambda f: pl.lit(0.1, dtype=pl.Float64) < f,
        lambda f: f.is_in([0.1, 0.5]),
        lambda f: ~f.is_in([1e300]),
    ],
)
def test_float64_literal_on_float32_column_is_rejected(floats: tf.Table, make: Callable[[pl.Expr], pl.Expr]) -> None:
    """Polars compares the number unchanged; a filter would use the nearest float, and a delete would remove rows that
    Polars does not select."""
    with pytest.raises(InvalidPredicateError):
        floats.scan(where=make(pl.col("f")))


def test_untranslatable_arrow_expressions_are_rejected(table: tf.Table) -> None:
    for where in (pc.field("i") + 1 > 2, pc.ends_with(pc.field("s"), "b"), pc.field("i") > pc.field("row")):
        with pytest.raises(InvalidPredicateError):
            table.scan(where=where)
    with pytest.raises(UnknownColumnError):
        table.scan(where=pc.field("ii") > 1)
    with pytest.raises(UnknownColumnError):
        table.scan(where=pl.col("ii") > 1)
    with pytest.raises(InvalidPredicateError):
        parse_where(object(), Schema())  # type: ignore[arg-type]


def test_every_operation_with_a_filter_accepts_expressions(tmp_path: Path) -> None:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    table.delete(pl.col("i") == 1)
    table.update(pc.field("i") == 2, set={"s": "'new'"})
    assert table.scan().filter(pl.col("s") == "new").select(["i"]).to_arrow().to_pylist() == [{"i": 2}]
    table.overwrite({"row": 9}, where=pl.col("i") > 2, allow_outside=True)
    assert rows_of(table, None) == [1, 2, 3, 9]
    table.maintenance.compact(where=pc.field("row") > 1, rewrite_all=True)
    with table.transaction() as tx:
        tx.delete(pc.field("row") == 9)
    assert rows_of(table, pl.col("row") >= 0) == [1, 2, 3]
    assert parse_where(None, iceberg_schema(ROWS.schema, format_version=2)) == AlwaysTrue()
