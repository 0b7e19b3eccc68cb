"""One table three times: a table of the lake that Spark writes, a native DuckDB table, and the in-memory model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import duckdb
import pyarrow as pa
from conditions_by_dialect import DUCKDB, KINDS, SPARK, Column, Condition, literal
from hypothesis import note
from pyspark.sql import DataFrame, SparkSession

from tableformat import Table
from tableformat.testing.key_order import Row, fingerprint
from tableformat.testing.model import ModelTable, ModelVerbs

TARGET = "target"


@dataclass(frozen=True, slots=True)
class Past:
    """A snapshot of the lake's table and what was in it."""

    snapshot_id: int
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]


@dataclass
class ThreeTables:
    """`columns` are the current columns of all three tables. `row` numbers the rows, so that rows with equal keys
    differ."""

    spark: SparkSession
    table: Table
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    fixed: frozenset[str]
    """Idents of columns that cannot be dropped: key and partition sources."""
    connection: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    past: list[Past] = field(default_factory=list)
    numbers: Any = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.model = ModelTable([column.ident for column in self.columns], self.key)
        self.connection.execute("SET TimeZone = 'UTC'")
        columns = ", ".join(f"{column.told(DUCKDB)} {KINDS[column.kind].duckdb}" for column in self.columns)
        self.connection.execute(f"CREATE TABLE {TARGET} ({columns})")

    # -- names

    @property
    def name(self) -> str:
        """The lake's table in Spark's SQL."""
        return f"lake.{self.table.name}"

    def named(self, dialect: str) -> str:
        return self.name if dialect == SPARK else TARGET

    def partition_names(self) -> set[str]:
        return {partition.name for partition in self.table.metadata.spec().fields}

    def column(self, ident: str) -> Column:
        return next(column for column in self.columns if column.ident == ident)

    def values(self, rows: Sequence[Row], dialect: str, columns: Sequence[Column] | None = None) -> str:
        """A FROM item `s` with the rows."""
        chosen = self.columns if columns is None else columns
        lines = [
            "(" + ", ".join(literal(row.get(column.ident), column.kind, dialect) for column in chosen) + ")"
            for row in rows
        ]
        names = ", ".join(column.told(dialect) for column in chosen)
        return f"(VALUES {', '.join(lines)}) AS s({names})"

    # -- writing

    def run(self, spark_sql: str, duckdb_sql: Sequence[str], on_model: Callable[[ModelVerbs], None] | None) -> None:
        """The same statement on all three."""
        note(spark_sql)
        self.spark.sql(spark_sql)
        self.others(duckdb_sql, on_model)

    def others(self, duckdb_sql: Sequence[str], on_model: Callable[[ModelVerbs], None] | None) -> None:
        for statement in duckdb_sql:
            self.connection.execute(statement)
        if on_model is not None:
            with self.model.commit() as verbs:
                on_model(verbs)

    def change_columns(self, spark_sql: str, duckdb_sql: Sequence[str], columns: Iterable[Column]) -> None:
        self.run(spark_sql, duckdb_sql, None)
        self.columns = tuple(columns)
        self.model.columns = tuple(column.ident for column in self.columns)

    def as_frame(self, rows: Sequence[Row]) -> DataFrame:
        return self.spark.sql(f"SELECT * FROM {self.values(rows, SPARK)}")

    # -- checking

    def check(self) -> None:
        """All rows, read by Spark, by Python, by DuckDB over the lake's table and by DuckDB over its own."""
        self.table.refresh()
        expected = self._of_model(self.model.rows())
        names = ", ".join(column.told(DUCKDB) for column in self.columns)
        self.connection.register("lake_table", self.table.scan().to_dataset())
        found = {
            "Python": self.table.scan().to_arrow(),
            "DuckDB over the lake": self._duckdb(f"SELECT {names} FROM lake_table"),
            "Spark": self.spark.table(self.name).toArrow(),
        }
        self.connection.unregister("lake_table")
        # DuckDB's MERGE and its grouping make -0.0 a 0.0.
        in_duckdb, in_model = self._duckdb(f"SELECT {names} FROM {TARGET}"), self.model.rows()
        for reader, rows in found.items():
            assert_same(self._fingerprint(rows), expected, reader)
        assert_same(self._fingerprint(in_duckdb, loosely=True), self._of_model(in_model, loosely=True), "DuckDB")
        snapshot_id = self.table.snapshot_id
        if snapshot_id is not None and (not self.past or self.past[-1].snapshot_id != snapshot_id):
            self.past.append(Past(snapshot_id, tuple(self.model.rows()), self.columns))

    def check_past(self, past: Past) -> None:
        """VERSION AS OF, in the schema of that version."""
        if self.table.metadata.snapshot_by_id(past.snapshot_id) is None:
            return
        note(f"VERSION AS OF {past.snapshot_id}")
        idents = [column.ident for column in past.columns]
        found = self.spark.sql(f"SELECT * FROM {self.name} VERSION AS OF {past.snapshot_id}").toArrow()
        assert found.column_names == [column.name for column in past.columns]
        assert_same(
            fingerprint(found.rename_columns(idents).to_pylist(), idents), fingerprint(past.rows, idents), "past"
        )

    def check_filter(self, condition: Condition) -> None:
        """Check that a filter matches the same rows in Spark, in DuckDB, in DuckDB over the lake, and in Python."""
        names = ", ".join(column.told(DUCKDB) for column in self.columns)
        rows = [row for row in self.model.rows() if condition.matches(row)]
        expected = self._of_model(rows)
        text = f"SELECT * FROM {self.name} WHERE {condition.text(SPARK, '')}"
        note(text)
        assert_same(self._fingerprint(self.spark.sql(text).toArrow()), expected, "Spark")
        where = condition.text(DUCKDB, "")
        in_duckdb = self._duckdb(f"SELECT {names} FROM {TARGET} WHERE {where}")
        assert_same(self._fingerprint(in_duckdb, loosely=True), self._of_model(rows, loosely=True), "DuckDB")
        self.connection.register("lake_table", self.table.scan().to_dataset())
        over_lake = self._duckdb(f"SELECT {names} FROM lake_table WHERE {where}")
        self.connection.unregister("lake_table")
        assert_same(self._fingerprint(over_lake), expected, "DuckDB over the lake")

    def check_query(self, query: Callable[[str], str]) -> None:
        """A query that needs no model: Spark on the lake's table as DuckDB on its own."""
        text = query(SPARK)
        note(text)
        by_spark, by_duckdb = self.spark.sql(text).toArrow(), self._duckdb(query(DUCKDB))
        assert_same(_loosely(by_spark), _loosely(by_duckdb), "Spark")

    def _duckdb(self, text: str) -> pa.Table:
        return self.connection.sql(text).to_arrow_table()

    def _of_model(self, rows: Sequence[Row], *, loosely: bool = False) -> Counter[tuple[Any, ...]]:
        idents = [column.ident for column in self.columns]
        return fingerprint([_loose_row(row) for row in rows] if loosely else rows, idents)

    def _fingerprint(self, rows: pa.Table, *, loosely: bool = False) -> Counter[tuple[Any, ...]]:
        """The rows by column identity, regardless of the order of columns."""
        assert set(rows.column_names) == {column.name for column in self.columns}, rows.column_names
        named = {column.name: column.ident for column in self.columns}
        renamed = rows.rename_columns([named[name] for name in rows.column_names])
        return self._of_model(renamed.to_pylist(), loosely=loosely)


def assert_same(found: Counter[tuple[Any, ...]], expected: Counter[tuple[Any, ...]], reader: str) -> None:
    assert found == expected, f"{reader}: missing {list(expected - found)}, too many {list(found - expected)}"


def renamed(columns: Iterable[Column], ident: str, name: str) -> list[Column]:
    return [replace(column, name=name) if column.ident == ident else column for column in columns]


def _loosely(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    """Rows by position; both zeros and numbers of all types are equal, because groups and bounds do not distinguish
    them."""
    names = [str(index) for index in range(rows.num_columns)]
    found = rows.rename_columns(names).to_pylist()
    return fingerprint([_loose_row(row) for row in found], names)


def _loose_row(row: Row) -> Row:
    return {name: _loose(value) for name, value in row.items()}


def _loose(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value
