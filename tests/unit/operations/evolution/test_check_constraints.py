"""`add_check`, `drop_check` and `checks`: what is stored, what is rejected, and how rows are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import sqlglot
from new_lakes import new_lake
from pyiceberg.expressions import GreaterThan

import tableformat as tf
from tableformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidArgumentError,
    InvalidPredicateError,
    RowsRefusedError,
    UnsupportedFeatureError,
)

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("v", pa.float64()),
        ("n", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("tz", pa.timestamp("us", "UTC")),
        ("at", pa.time64("us")),
        ("place", pa.struct([("my city", pa.string())])),
    ]
)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[tf.Table]:
    """One row: 1, 1.0, the rest null."""
    with new_lake(tmp_path / "lake") as catalog:
        table = catalog.create_table("db.t", SCHEMA, key=["id"])
        table.append([{"id": 1, "v": 1.0}])
        yield table


@pytest.mark.parametrize(
    ("condition", "spark"),
    [
        ('"v" > 0.5', "`v` > 0.5D"),
        ("n BETWEEN 1.5 AND 3", "`n` >= 1.50BD AND `n` <= 3.00BD"),
        ("id > 0 AND (s = 'a' OR s IN ('b', 'c'))", "`id` > 0 AND (`s` = 'a' OR `s` IN ('b', 'c'))"),
        (r"s <> 'it''s a \'", r"`s` <> 'it\'s a \\'"),
        ("s NOT LIKE 'x%' OR b", "NOT startswith(`s`, 'x') OR `b` <> false"),
        ("NOT isnan(v)", "`v` <> CAST('NaN' AS DOUBLE)"),
        ("id IS NOT NULL AND v > 0", "`id` IS NOT NULL AND `v` > 0.0D"),
        ("day > DATE '2020-01-01' OR day IS NULL", "`day` > DATE '2020-01-01' OR `day` IS NULL"),
        ("ts < TIMESTAMP '2030-01-01 00:00:00.5'", "`ts` < TIMESTAMP_NTZ '2030-01-01 00:00:00.500000'"),
        ("tz < TIMESTAMPTZ '2030-01-01 00:00:00Z'", "`tz` < TIMESTAMP '2030-01-01 00:00:00Z'"),
        ("place.\"my city\" = 'Bonn'", "`place`.`my city` = 'Bonn'"),
        (GreaterThan("id", 0), "`id` > 0"),
        (pc.field("id") > 0, "`id` > 0"),
        (pl.col("v") > 0.5, "`v` > 0.5D"),
    ],
)
def test_condition_is_stored_as_spark_sql_and_expression(table: tf.Table, condition: Any, spark: str) -> None:
    """CK-7: with literals of their columns' types, columns quoted, strings escaped as Spark reads them."""
    assert table.add_check("c", condition).checks == {"c": spark}
    assert sqlglot.parse_one(spark, dialect="spark")
    assert table.properties["tableformat.check-expression.c"].startswith("{")
    table.append([{"id": 2, "v": 1.0, "s": "b", "n": 2}])


@pytest.mark.parametrize(
    ("condition", "column", "broken", "kept"),
    [
        ("v > 0", "v", [-1.0], [1.0, None]),
        ("b IS TRUE", "b", [False, None], [True]),
        ("b IS NOT DISTINCT FROM true", "b", [False, None], [True]),
        ("s NOT IN ('x', NULL)", "s", ["x"], ["y", None]),
        ("NOT isnan(v)", "v", [float("nan")], [1.0, None]),
        ("n > 0.5", "n", [0], [1, None]),
    ],
)
def test_rows_with_false_condition_are_rejected(
    tmp_path: Path, condition: str, column: str, broken: list[Any], kept: list[Any]
) -> None:
    """CK-7, CK-2: an unknown condition rejects no row, and a condition that is false for a null rejects it."""
    with new_lake(tmp_path / "lake") as catalog:
        table = catalog.create_table("db.t", SCHEMA, key=["id"]).add_check("c", condition)
        rows = [{"id": number, column: value} for number, value in enumerate([*broken, *kept])]
        result = table.append(pa.Table.from_pylist(rows, schema=SCHEMA), on_refused="divert")
        assert result.added_row_count == len(kept)
        assert result.refused is not None
        assert result.refused["id"].to_pylist() == list(range(len(broken)))


@pytest.mark.parametrize(
    ("name", "condition", "error", "message"),
    [
        ("c", "v > 5", InvalidArgumentError, r"branch 'main' violate it, for example one with \{'v': 1.0\}"),
        ("c", "b IS TRUE OR s IS NOT NULL OR v > 1", InvalidArgumentError, "'v': 1.0"),
        ("c", "1 = 1", InvalidArgumentError, "no row can violate it"),
        ("c", "id IN (1, NULL)", InvalidArgumentError, "no row can violate it"),
        ("c", "id % 2 = 1", InvalidPredicateError, "a scan cannot filter by"),
        ("c", "v > 0) OR (v < 5", InvalidPredicateError, "not a SQL condition"),
        ("c", "at > TIME '10:00:00'", UnsupportedFeatureError, "cannot be written in Spark's SQL"),
        ("c", "v < 'inf'::DOUBLE", UnsupportedFeatureError, "cannot be written in Spark's SQL"),
        ("c d", "v > 0", InvalidArgumentError, "letters, digits and underscores"),
        ("", "v > 0", InvalidArgumentError, "letters, digits and underscores"),
        ("KNOWN", "v > 0", AlreadyExistsError, r"'known' already exists: .*drop_check\('known'\)"),
    ],
)
def test_invalid_constraints_are_rejected(
    table: tf.Table, name: str, condition: str, error: type[Exception], message: str
) -> None:
    """CK-7, CK-8, CK-9."""
    table.add_check("known", "id >= 0")
    before = table.iceberg.metadata_location
    with pytest.raises(error, match=message):
        table.add_check(name, condition)
    assert table.refresh().iceberg.metadata_location == before


def test_rows_of_branches_are_checked(table: tf.Table) -> None:
    """CK-8."""
    assert table.catalog is not None
    table.create_branch("audit")
    table.catalog.load_table("db.t", branch="audit").append([{"id": 2, "v": -1.0}])  # type: ignore[attr-defined]
    with pytest.raises(InvalidArgumentError, match="branch 'audit' violate it"):
        table.add_check("positive", "v > 0")
    table.drop_branch("audit").add_check("positive", "v > 0")


def rows_come(table: tf.Table) -> None:
    table.append([{"id": 2, "v": -1.0}])


def rows_come_to_a_new_branch(table: tf.Table) -> None:
    table.create_branch("new")
    rows_come(table.catalog.load_table("db.t", branch="new"))  # type: ignore[union-attr,arg-type]


MEANWHILE: dict[str, Callable[[tf.Table], Any]] = {
    "rows": rows_come,
    "rows of a new branch": rows_come_to_a_new_branch,
    "another of the name": lambda table: table.add_check("positive", "v < 100"),
}


@pytest.mark.parametrize("name", MEANWHILE)
def test_concurrent_changes_conflict_with_add_check(
    table: tf.Table, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """CK-8: the constraint is not added if rows have not been checked, and does not replace another one."""
    from tableformat.operations.evolution import check_constraints

    other: Any = table.catalog.load_table("db.t")  # type: ignore[union-attr]
    looked = check_constraints._refuse_broken

    def look_and_write(*arguments: Any) -> None:
        looked(*arguments)
        monkeypatch.setattr(check_constraints, "_refuse_broken", looked)
        MEANWHILE[name](other)

    monkeypatch.setattr(check_constraints, "_refuse_broken", look_and_write)
    with pytest.raises(CommitConflictError):
        table.add_check("positive", "v > 0")
    assert table.refresh().checks in ({}, {"positive": "`v` < 100.0D"})


def test_constraint_of_empty_table_applies_to_stale_handles(tmp_path: Path) -> None:
    """CK-3, CK-8: without a snapshot there is nothing to check, and the constraint also holds for a writer that has not
    loaded it yet."""
    with new_lake(tmp_path / "lake") as catalog:
        table = catalog.create_table("db.t", SCHEMA)
        writer = catalog.load_table("db.t")
        table.add_check("positive", "v > 0")
        with pytest.raises((RowsRefusedError, CommitConflictError)):
            writer.append([{"id": 1, "v": -1.0}])
        assert catalog.load_table("db.t").scan().count() == 0


def test_drop_check_removes_all_properties(table: tf.Table) -> None:
    """CK-9: by its name without case."""
    table.add_check("positive", "v > 0")
    with pytest.raises(InvalidArgumentError, match=r"no CHECK constraint 'positiv'\. It has: positive"):
        table.drop_check("positiv")
    assert table.drop_check("Positive").checks == {}
    assert [name for name in table.properties if "check" in name] == []
    assert table.append([{"id": 2, "v": -1.0}]).added_row_count == 1


def test_constraint_columns_cannot_be_dropped_or_renamed(table: tf.Table) -> None:
    """CK-4, in Python as in Spark."""
    table.add_check("positive", "v > 0")
    for change in (lambda update: update.rename_column("v", "w"), lambda update: update.delete_column("v")):
        with pytest.raises(InvalidArgumentError, match=r"used by the CHECK constraint 'positive'"):
            change(table.update_schema())
    with table.update_schema() as update:
        update.rename_column("s", "text")
    assert "text" in table.schema.names
