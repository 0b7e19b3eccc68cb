"""`tf.duckdb.sql`: time travel, INSERT and DELETE in DuckDB's SQL over attached catalogs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.catalogs.heads import Heads
from tableformat.errors import (
    DuplicateKeyError,
    InvalidArgumentError,
    InvalidPredicateError,
    SnapshotNotFoundError,
    TableFormatError,
    UnsupportedFeatureError,
)

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("Name", pa.string()), ("price", pa.float64())])


@dataclass
class Attached:
    connection: duckdb.DuckDBPyConnection
    catalog: tf.Catalog
    table: tf.Table
    first: int
    """The snapshot with rows 1 and 2; a third row was added after it."""

    def run(self, sql: str) -> Any:
        return tf.duckdb.sql(self.connection, sql)

    def rows(self, sql: str) -> list[Any]:
        return self.run(sql).fetchall()

    def ids(self) -> list[int]:
        return sorted(self.table.refresh().scan().to_arrow()["id"].to_pylist())


@pytest.fixture
def attached(tmp_path: Path) -> Iterator[Attached]:
    with tf.open_catalog(str(tmp_path)) as catalog, duckdb.connect() as connection:
        catalog.create_namespace("db")
        table = catalog.create_table("db.items", SCHEMA, key=["id"])
        table.append(pa.table({"id": [1, 2], "Name": ["a", "b"], "price": [1.0, 2.0]}))
        first = table.snapshot_id
        assert first is not None
        table.create_tag("two")
        table.append(pa.table({"id": [3], "Name": ["c"], "price": [3.0]}))
        tf.duckdb.attach(connection, catalog)
        yield Attached(connection, catalog, table, first)


class TestTimeTravel:
    def test_time_travel_by_snapshot_tag_branch_and_time(self, attached: Attached) -> None:
        at = "SELECT count(*) FROM lake.db.items AT ({})"
        moment = attached.table.metadata.snapshot_by_id(attached.first).timestamp_ms
        for clause in (
            f"VERSION => {attached.first}",
            "VERSION => 'two'",
            f"TIMESTAMP => make_timestamp({moment}000)::TIMESTAMP AT TIME ZONE 'UTC'",
        ):
            assert attached.rows(at.format(clause)) == [(2,)], clause
        assert attached.rows(at.format("VERSION => 'main'")) == [(3,)]
        assert attached.rows(at.format("TIMESTAMP => now()")) == [(3,)]

    def test_one_query_reads_two_snapshots_of_a_table(self, attached: Attached) -> None:
        """Names in the query stay what they were: of the table, of an alias, in a WITH, without the database."""
        attached.connection.execute("USE lake.db")
        new = attached.rows(
            f"WITH old AS (SELECT * FROM Items AT (VERSION => {attached.first})) "
            f"SELECT items.id, (SELECT max(o.id) FROM items o AT (VERSION => 'two')) FROM items "
            "ANTI JOIN old ON items.id = old.id"
        )
        assert new == [(3, 2)]
        assert attached.rows("SELECT count(*) FROM LAKE.DB.ITEMS AT (VERSION => 'two')") == [(2,)]
        assert attached.rows("SELECT items.id FROM db.items AT (VERSION => 'two') ORDER BY ALL LIMIT 1") == [(1,)]

    def test_time_travel_uses_the_snapshot_schema(self, attached: Attached) -> None:
        with attached.table.update_schema() as update:
            update.rename_column("price", "cost")
        attached.table.delete_rows([{"id": 3}])
        assert attached.run(f"FROM lake.db.items AT (VERSION => {attached.first})").columns == ["id", "Name", "price"]

    @pytest.mark.parametrize(
        ("clause", "error", "message"),
        [
            ("VERSION => 5", SnapshotNotFoundError, "no snapshot 5"),
            ("VERSION => 'thre'", TableFormatError, "thre"),
            ("VERSION => NULL", InvalidArgumentError, "is not a snapshot"),
            ("TIMESTAMP => TIMESTAMP '1999-01-01'", SnapshotNotFoundError, "had no snapshot at"),
        ],
    )
    def test_unknown_snapshot_or_ref_raises_error(
        self, attached: Attached, clause: str, error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            attached.run(f"FROM lake.db.items AT ({clause})")

    @pytest.mark.skipif(duckdb.__version__.startswith("1."), reason="DuckDB refuses a zero byte in a statement")
    def test_time_travel_query_with_zero_bytes_in_literals(self, attached: Attached) -> None:
        """DuckDB leaves out what stands behind one in a literal, when it writes a statement again."""
        attached.table.append(pa.table({"id": [7, 8], "Name": ["c\0", "c\0d"], "price": [7.0, 8.0]}))
        past = f"lake.db.items AT (VERSION => {attached.table.snapshot_id})"
        assert attached.rows(f"SELECT id FROM {past} WHERE Name = 'c'") == [(3,)]
        assert attached.rows(f"SELECT id FROM {past} WHERE Name = 'c\0'") == [(7,)]
        assert attached.rows(f"SELECT id, 'x\0y' FROM {past} WHERE Name > 'c\0'") == [(8, "x\0y")]

    def test_time_travel_in_statements_that_contain_queries(self, attached: Attached) -> None:
        past = f"lake.db.items AT (VERSION => {attached.first})"
        attached.run(f"CREATE OR REPLACE TABLE memory.kept AS SELECT * FROM {past} WHERE id > 1")
        assert attached.rows("FROM memory.kept") == [(2, "b", 2.0)]
        attached.run(f"CREATE TEMP TABLE more (id) AS (SELECT id FROM {past})")
        attached.run(f"INSERT INTO memory.kept (FROM {past} LIMIT 1)")
        assert attached.rows("SELECT (SELECT count(*) FROM memory.kept), list(id) FROM more") == [(2, [1, 2])]
        assert [row[0] for row in attached.rows(f"DESCRIBE SELECT id FROM {past}")] == ["id"]
        assert [row[0] for row in attached.rows(f"SUMMARIZE SELECT id FROM {past}")] == ["id"]
        ((kind, plan),) = attached.rows(f"EXPLAIN SELECT id FROM {past} WHERE id = 2")
        assert (kind, "id" in plan) == ("physical_plan", True)
        ((kind, plan),) = attached.rows(f"EXPLAIN (ANALYZE, FORMAT json) FROM {past}")
        assert plan.lstrip().startswith("{")

    def test_view_cannot_use_time_travel(self, attached: Attached) -> None:
        """It would outlive what is registered for it."""
        with pytest.raises(duckdb.Error):
            attached.run(f"CREATE VIEW memory.kept AS SELECT * FROM lake.db.items AT (VERSION => {attached.first})")

    def test_attach_all_tables_at_one_tag(self, attached: Attached) -> None:
        attached.catalog.create_table("db.later", SCHEMA)
        tf.duckdb.attach(attached.connection, attached.catalog, name="past", tag="two")
        assert attached.rows("SELECT count(*) FROM past.db.items") == [(2,)]
        with pytest.raises(duckdb.Error, match="no tag 'two'"):
            attached.rows("FROM past.db.later")
        attached.table.delete("id = 1")
        assert tf.duckdb.refresh(attached.connection, name="past") == {}
        tf.duckdb.detach(attached.connection, name="past")
        with pytest.raises(InvalidArgumentError, match="tag"):
            tf.duckdb.attach(attached.connection, attached.catalog, name="past", tag="two", branch="main")


class TestRefresh:
    def test_refresh_reports_changed_columns(self, attached: Attached) -> None:
        before = attached.table.snapshot_id
        with attached.table.update_schema() as update:
            update.rename_column("Name", "title")
        assert tf.duckdb.refresh(attached.connection) == {"lake.db.items": before}
        assert attached.rows("SELECT title FROM lake.db.items ORDER BY id") == [("a",), ("b",), ("c",)]
        assert tf.duckdb.refresh(attached.connection) == {}

    def test_refresh_shows_a_table_renamed_to_an_existing_name(self, attached: Attached) -> None:
        other = attached.catalog.create_table("db.other", SCHEMA)
        other.append(pa.table({"id": [7], "Name": ["x"], "price": [7.0]}))
        tf.duckdb.refresh(attached.connection)
        attached.catalog.rename_table("db.items", "db.old")
        attached.catalog.rename_table("db.other", "db.items")
        tf.duckdb.refresh(attached.connection)
        assert attached.rows("SELECT id FROM lake.db.items") == [(7,)]
        assert attached.rows("SELECT count(*) FROM lake.db.old") == [(3,)]


class TestInsert:
    @pytest.mark.parametrize(
        "sql",
        [
            "INSERT INTO lake.db.items VALUES (9, 'x', 1.5)",
            "insert /* of */ into lake.db.\"items\" (\"Name\", ID) -- two\n select 'x', '9';",
            "INSERT INTO lake.db.items BY NAME (SELECT 9::SMALLINT AS id, 'x' AS name)",
            "INSERT INTO lake.db.items BY POSITION WITH w AS (SELECT 9, 'x', 1) FROM w",
            "INSERT INTO lake.db.items SELECT id + 8, 'x', price FROM lake.db.items AT (VERSION => 'two') LIMIT 1",
        ],
    )
    def test_rows_of_a_query_are_appended(self, attached: Attached, sql: str) -> None:
        result = attached.run(sql)
        assert result.added_row_count == 1
        assert attached.rows('SELECT id, "Name" FROM lake.db.items WHERE id > 3') == [(9, "x")]
        assert attached.ids() == [1, 2, 3, 9]

    def test_insert_or_replace_upserts(self, attached: Attached) -> None:
        attached.run("INSERT OR REPLACE INTO lake.db.items SELECT id, upper(Name), price FROM lake.db.items")
        assert attached.rows('SELECT "Name" FROM lake.db.items ORDER BY ALL') == [("A",), ("B",), ("C",)]

    @pytest.mark.parametrize(
        ("sql", "message"),
        [
            ("INSERT OR IGNORE INTO lake.db.items VALUES (1, 'x', 1)", "OR IGNORE into db.items is not supported"),
            ("INSERT INTO lake.db.items DEFAULT VALUES", "is not a query"),
            ("INSERT INTO lake.db.items VALUES (1, 'x')", "returns 2 columns for id, Name, price"),
            ("INSERT INTO lake.db.items (id, size) VALUES (1, 2)", "column size does not exist"),
            ("INSERT INTO lake.db.items VALUES (1, 'x', 1) RETURNING id", "RETURNING"),
            ("INSERT INTO lake.db.items VALUES ('one', 'x', 1)", "Could not convert string 'one'"),
            ("INSERT INTO lake.db.item VALUES (1, 'x', 1)", "item does not exist"),
            ("SELECT 1; SELECT 2", "the text has 2"),
        ],
    )
    def test_rejected_statements_change_nothing(self, attached: Attached, sql: str, message: str) -> None:
        with pytest.raises((TableFormatError, duckdb.Error), match=message):
            attached.run(sql)
        assert attached.ids() == [1, 2, 3]

    def test_tables_of_duckdb_itself_are_unaffected(self, attached: Attached) -> None:
        attached.run("CREATE TABLE memory.own (a INTEGER)")
        attached.run("INSERT INTO memory.own VALUES (1), (2)")
        attached.run("DELETE FROM memory.own WHERE a = 1")
        assert attached.rows("FROM memory.own") == [(2,)]


class TestDelete:
    @pytest.mark.parametrize(
        ("sql", "left"),
        [
            ("DELETE FROM lake.db.items WHERE id >= 2 AND \"Name\" <> 'c';", [1, 3]),
            ("DELETE FROM lake.db.items WHERE price IN (1, 3)", [2]),
            ("DELETE FROM lake.db.items", []),
        ],
    )
    def test_matching_rows_are_deleted(self, attached: Attached, sql: str, left: list[int]) -> None:
        attached.run(sql)
        assert attached.ids() == left
        assert sorted(row[0] for row in attached.rows("SELECT id FROM lake.db.items")) == left

    @pytest.mark.parametrize(
        "sql",
        [
            "DELETE FROM lake.db.items USING memory.own WHERE id = a",
            "DELETE FROM lake.db.items WHERE id IN (SELECT 1)",
            "DELETE FROM lake.db.items WHERE id = 1 RETURNING *",
        ],
    )
    def test_rejected_statements_change_nothing(self, attached: Attached, sql: str) -> None:
        with pytest.raises(TableFormatError):
            attached.run(sql)
        assert attached.ids() == [1, 2, 3]

    @pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
    @pytest.mark.parametrize(
        "condition",
        [
            "taken < '2024-01-01'",
            "taken >= TIMESTAMP '2024-01-01 03:00:00.000001'",
            "taken < DATE '2024-01-01'",
            "taken IN ('2024-01-01 02:00', TIMESTAMPTZ '2024-01-01 05:00+02:00')",
            "NOT (taken BETWEEN '2023-12-31 20:00' AND '2024-01-01 04:00:00+00')",
        ],
    )
    def test_times_without_offset_use_the_connection_time_zone(
        self, attached: Attached, condition: str, zone: str
    ) -> None:
        """The rows that a SELECT shows go; by UTC others went."""
        schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("taken", pa.timestamp("us", "UTC"))])
        table = attached.catalog.create_table("db.moments", schema, key=["id"])
        start = datetime(2023, 12, 31, tzinfo=UTC)
        table.append(pa.table({"id": [*range(48)], "taken": [start + timedelta(hours=hour) for hour in range(48)]}))
        tf.duckdb.refresh(attached.connection)
        attached.run(f"SET TimeZone = '{zone}'")
        shown = {row[0] for row in attached.rows(f"SELECT id FROM lake.db.moments WHERE {condition}")}
        assert 0 < len(shown) < 48
        attached.run(f"DELETE FROM lake.db.moments WHERE {condition}")
        assert set(table.refresh().scan().to_arrow()["id"].to_pylist()) == set(range(48)) - shown


_FLOATS = [0.1, 0.2, 0.7, 1.0, 16777216.0, 1e30, None, -0.1]
_DOUBLES = [0.1, 0.2, 0.7, 1.0, 0.10000000149011612, 1e30, None, -0.1]
_PRICES = ["1.25", "1.26", "1.30", "0.10", "-1.25", "100.00", "0.70", "2.26"]
_NUMBERS = """0.1; 1e-1; 0.1::DOUBLE; '0.1'::DOUBLE; 0.1::FLOAT; '0.1'::FLOAT; -1e-1; 7e-1; 0.7::FLOAT; 16777217;
    16777217::DOUBLE; 1e30; 1e39; -1e39; 1e-50; -1e-50; 'inf'::DOUBLE; 'nan'::DOUBLE"""
_KEPT = "1.25::DECIMAL(9, 2); 100::DECIMAL(4, 1); 1.250::DECIMAL; 1::TINYINT"


class TestNumbersOfTheirOwnType:
    """A condition has the same meaning in `where=`, and so in DELETE, as in DuckDB: DELETE removes the rows that SELECT
    returns."""

    @pytest.fixture
    def numbers(self, attached: Attached) -> Attached:
        schema = pa.schema([("id", pa.int64()), ("f", pa.float32()), ("d", pa.float64()), ("p", pa.decimal128(9, 2))])
        attached.table = attached.catalog.create_table("db.numbers", schema)
        columns = [[*range(8)], _FLOATS, _DOUBLES, [Decimal(each) for each in _PRICES]]
        attached.table.append(pa.table(columns, schema=schema))
        tf.duckdb.refresh(attached.connection)
        attached.connection.execute("CREATE TABLE memory.own AS FROM lake.db.numbers")
        return attached

    @pytest.mark.parametrize(("column", "texts"), [("f", _NUMBERS), ("d", _NUMBERS), ("p", _KEPT)])
    def test_numbers_are_compared_as_in_duckdb(self, numbers: Attached, column: str, texts: str) -> None:
        for number in map(str.strip, texts.split(";")):
            for condition in (
                *(f"{column} {operator} {number}" for operator in ("=", "<>", "<", "<=", ">", ">=")),
                f"{column} IN ({number}, 5)",
                f"NOT ({column} BETWEEN {number} AND {number})",
            ):
                shown = numbers.rows(f"SELECT id FROM memory.own WHERE {condition} ORDER BY id")
                kept = numbers.table.scan(condition).to_arrow()["id"].to_pylist()
                assert sorted(kept) == [row[0] for row in shown], condition

    @pytest.mark.parametrize(
        ("text", "is_rounded"),
        [
            ("'2024-01-01 12:00:00.0005'::TIMESTAMP_MS", True),
            ("'2024-01-01 12:00:00.5'::TIMESTAMP_S", True),
            ("'2024-01-01 12:00:00.5000+00'::TIMESTAMP_MS", False),
            ("'2024-01-01 12:00:00.000'::TIMESTAMP_S", False),
        ],
    )
    def test_timestamps_that_would_be_rounded_are_rejected(
        self, attached: Attached, text: str, is_rounded: bool
    ) -> None:
        schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
        table = attached.catalog.create_table("db.times", schema)
        if is_rounded:
            with pytest.raises(InvalidPredicateError):
                table.scan(f'"at" > {text}')
        else:
            assert table.scan(f'"at" > {text}').count() == 0

    @pytest.mark.parametrize(
        ("number", "message"),
        [
            ("1.255::DECIMAL(9, 2)", "rounds a number"),
            ("1.25::DECIMAL(9, 1)", "rounds a number"),
            ("1.2345::DECIMAL", "rounds a number"),
            ("1000::DECIMAL(4, 1)", "out of the range"),
            ("300::TINYINT", "out of the range"),
            ("3000000000::INT", "out of the range"),
            ("1e39::FLOAT", "out of the range"),
        ],
    )
    def test_casts_to_other_number_types_are_rejected(self, numbers: Attached, number: str, message: str) -> None:
        """The cast used to be ignored."""
        with pytest.raises(InvalidPredicateError, match=message):
            numbers.table.scan(f"p = {number}")


class TestStatesThatAreAttached:
    def test_changes_go_to_the_attached_branch(self, attached: Attached) -> None:
        """They used to go to `main`, which the connection does not show."""
        attached.table.create_branch("work")
        tf.duckdb.attach(attached.connection, attached.catalog, name="work", branch="work")
        attached.run("DELETE FROM work.db.items WHERE id = 1")
        attached.run("INSERT INTO work.db.items VALUES (4, 'd', 4.0)")
        attached.run("INSERT OR REPLACE INTO work.db.items VALUES (3, 'e', 3.5)")
        with pytest.raises(DuplicateKeyError):  # CP-67
            attached.run("INSERT OR REPLACE INTO work.db.items VALUES (3, 'f', 3.5), (3, 'g', 3.5)")
        assert attached.rows('SELECT id, "Name" FROM work.db.items ORDER BY id') == [(2, "b"), (3, "e"), (4, "d")]
        assert attached.ids() == [1, 2, 3]
        assert attached.rows("SELECT id FROM work.db.items AT (TIMESTAMP => now()) ORDER BY id") == [(2,), (3,), (4,)]
        attached.catalog.create_table("db.other", SCHEMA, key=["id"]).append(pa.table({"id": [1]}))
        tf.duckdb.refresh(attached.connection)
        with pytest.raises(SnapshotNotFoundError):
            attached.run("INSERT INTO work.db.other VALUES (4, 'd', 4.0)")

    @pytest.mark.parametrize(
        "sql", ["DELETE FROM past.db.items WHERE id = 1", "INSERT INTO past.db.items VALUES (4, 'd', 4.0)"]
    )
    @pytest.mark.parametrize("state", ["tag", "snapshot_id", "as_of"])
    def test_past_snapshots_are_read_only(self, attached: Attached, state: str, sql: str) -> None:
        chosen = {"tag": "two", "snapshot_id": attached.first, "as_of": datetime.now(UTC)}[state]
        tf.duckdb.attach(attached.connection, attached.catalog, name="past", **{state: chosen})
        with pytest.raises(UnsupportedFeatureError, match=f"attached at {state}="):
            attached.run(sql)
        assert attached.ids() == [1, 2, 3]


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("UPDATE lake.db.items SET price = 0", r"UPDATE lake\.db\.items .*table\.update"),
        ("MERGE INTO lake.db.items USING (SELECT 1) ON false WHEN MATCHED THEN DELETE", r"table\.merge"),
        ("CREATE TABLE lake.db.made AS SELECT 1 AS id", r"catalog\.create_table"),
        ("CREATE OR REPLACE TABLE lake.main.made AS SELECT 1 AS id", r"catalog\.create_table"),
        ("DROP TABLE IF EXISTS lake.db.items", r"catalog\.drop_table"),
        ("ALTER TABLE lake.db.items ADD COLUMN z INTEGER", r"table\.update_schema"),
        ("TRUNCATE lake.db.items", r"DELETE FROM without WHERE"),
    ],
)
def test_statements_with_only_in_memory_effect_are_rejected(attached: Attached, sql: str, told: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=told):
        attached.run(sql)
    assert attached.catalog.list_tables() == ["db.items"]
    assert attached.ids() == [1, 2, 3]


def test_statements_on_other_databases_are_passed_to_duckdb(attached: Attached) -> None:
    """Also if the catalog is the current database, and its tables are named without it."""
    attached.run("CREATE TABLE mine AS SELECT 1 AS id")
    attached.run("UPDATE mine SET id = 2")
    attached.run("CREATE TABLE memory.other AS FROM mine")
    attached.connection.execute("USE lake")
    attached.run("CREATE TEMP TABLE passing AS FROM memory.main.mine")
    attached.run("INSERT INTO passing VALUES (3)")
    assert attached.rows("FROM passing ORDER BY id") == [(2,), (3,)]
    with pytest.raises(UnsupportedFeatureError, match="CREATE TABLE made"):
        attached.run("CREATE TABLE made AS SELECT 1 AS id")


def test_invalid_attach_arguments_do_not_change_the_connection(attached: Attached) -> None:
    connection: Any = attached.connection
    for arguments in ((connection, "lake/"), (attached.catalog, connection), ("x", attached.catalog)):
        with pytest.raises(InvalidArgumentError, match="must be"):
            tf.duckdb.attach(*arguments, name="more")
    assert tf.duckdb.refresh(connection) == {}


def test_failed_attach_is_undone(attached: Attached, monkeypatch: pytest.MonkeyPatch) -> None:
    attached.catalog.create_namespace("later")

    def interrupted(_heads: Heads, namespace: str) -> list[str]:
        if namespace == "later":
            raise KeyboardInterrupt
        return ["db.items"]

    monkeypatch.setattr(Heads, "list_tables", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tf.duckdb.attach(attached.connection, attached.catalog, name="more")
    monkeypatch.undo()
    tf.duckdb.attach(attached.connection, attached.catalog, name="more")
    assert attached.rows("SELECT count(*) FROM more.db.items") == [(3,)]
