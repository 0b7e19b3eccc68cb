"""Random statements give the same rows in Spark on the lake's table, in DuckDB on its own table, and in the model.

After each statement the rows are read from Spark, from Python, and from DuckDB over the lake's table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import count

import pytest
from conditions_by_dialect import KINDS, SPARK, Column
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from random_statements import (
    CHANGES_BESIDE_DELETED,
    CHANGES_OF_COLUMNS,
    READS,
    UPKEEP,
    WRITES,
    delete_keys,
    insert_many,
)
from three_tables import ThreeTables

from tableformat import Catalog

EXAMPLES = max(1, settings().max_examples // 25)
"""A statement is some hundred times what a step of the other properties is."""
pytestmark = pytest.mark.usefixtures("generated_code")
STATEMENTS = 10
PARTITIONINGS = (
    (),
    (),
    ("bucket(3, id)",),
    ("bucket(2, n)", "text"),
    ("truncate(1, id)",),
    ("days(at)",),
    ("months(day)", "bucket(2, amount)"),
    ("truncate(10, n)",),
    ("truncate(1, bin)",),
    ("years(moment)",),
    ("ratio",),
)
COLUMNS = (
    Column("id", "id", "string"),
    Column("n", "n", "bigint"),
    Column("row", "row", "bigint"),
    Column("text", "text", "string"),
    Column("at", "at", "timestamp_ntz"),
    Column("moment", "moment", "timestamp"),
    Column("day", "day", "date"),
    Column("ratio", "ratio", "double"),
    Column("small", "small", "float"),
    Column("amount", "amount", "decimal"),
    Column("bin", "bin", "binary"),
    Column("num", "num", "int"),
    Column("flag", "flag", "boolean"),
)
KEYS = (("id", "n"), ("n",), ("id",))
"""With one column, Spark passes the keys that a statement matches to its second read of the table (SP-50)."""
WAYS_TO_DELETE = (
    "",
    ", 'write.delete.prefix-encoding' = 'equality'",
    "".join(f", 'write.{each}.mode' = 'copy-on-write'" for each in ("update", "merge")),
    "".join(f", 'write.{each}.mode' = 'copy-on-write'" for each in ("delete", "update"))
    + ", 'write.delete.blind' = 'range'",
)
"""Tables with the last two values have files that contain both kept rows and rows that blind deletes have deleted
(SP-71)."""
_numbers = count()


def new_tables(spark: SparkSession, lake: Catalog, namespace: str, data: st.DataObject) -> ThreeTables:
    partitioning = data.draw(st.sampled_from(PARTITIONINGS))
    version = data.draw(st.sampled_from(["2", "3"]))
    key = data.draw(st.sampled_from(KEYS))
    sources = {column.ident for column in COLUMNS if any(column.ident in text for text in partitioning)}
    nullable = data.draw(st.lists(st.sampled_from(COLUMNS[3:]), min_size=2, max_size=4, unique=True))
    columns = [*COLUMNS[:3], *(c for c in COLUMNS[3:] if c in nullable or c.ident in sources)]
    table_name = f"lake.{namespace}.t{next(_numbers)}"
    listed = ", ".join(
        f"{column.told(SPARK)} {KINDS[column.kind].spark}{' NOT NULL' if column.ident in key else ''}"
        for column in columns
    )
    partitioned = f"PARTITIONED BY ({', '.join(partitioning)})" if partitioning else ""
    text = (
        f"CREATE TABLE {table_name} ({listed}, PRIMARY KEY ({', '.join(key)})) {partitioned} "
        f"TBLPROPERTIES ('format-version' = '{version}', 'write.wap.enabled' = 'true'"
        f"{data.draw(st.sampled_from(WAYS_TO_DELETE))})"
    )
    note(text)
    spark.sql(text)
    table = lake.load_table(table_name.removeprefix("lake."))
    return ThreeTables(spark, table, tuple(columns), key, frozenset({*key, *sources}))


@contextmanager
def on_branch_of_session(tables: ThreeTables, lake: Catalog) -> Iterator[None]:
    """SP-23: statements write to `audit` and read it, main has no row; then main is moved there."""
    note("spark.wap.branch = audit")
    main = tables.table
    tables.spark.conf.set("spark.wap.branch", "audit")
    try:
        tables.spark.sql(f"INSERT INTO {tables.name} SELECT * FROM {tables.name}")
        tables.table = lake.load_table(main.name, branch="audit")
        yield
        assert main.refresh().snapshot_id is None, "a statement wrote to main"
    finally:
        tables.spark.conf.unset("spark.wap.branch")
    assert tables.spark.table(tables.name).count() == 0
    tables.spark.sql(f"CALL lake.system.fast_forward('{main.name}', 'main', 'audit')").collect()
    tables.table = main.refresh()
    tables.check()


def test_random_statements_agree_in_spark_duckdb_and_model(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """DA-1 to DA-7, RD-2, RD-5.

    First a family of statements is drawn, so that there are rows when columns change, then a statement of that family.
    Half of the tables begin with blind deletes by key, each before a statement that reads: a plan that lost such a
    delete would bring rows back. A third of the tables are written to on a branch of the session, and main is moved to
    that branch at the end (SP-23).
    """

    # Shrinking what takes seconds an example would take longer than reading it.
    @settings(max_examples=EXAMPLES, phases=[Phase.explicit, Phase.reuse, Phase.generate])
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        tables = new_tables(spark, lake, namespace, data)
        kinds = st.sampled_from([*[WRITES] * 5, *[CHANGES_OF_COLUMNS] * 2, *[UPKEEP] * 2, *[READS] * 3])
        begins_with_deletes = data.draw(st.booleans())
        beginning = (delete_keys, data.draw(st.sampled_from(CHANGES_BESIDE_DELETED))) * 2 if begins_with_deletes else ()
        with on_branch_of_session(tables, lake) if data.draw(st.integers(0, 2)) == 0 else nullcontext():
            insert_many(tables, data.draw)
            tables.check()
            for step in range(STATEMENTS):
                statement = beginning[step] if step < len(beginning) else data.draw(kinds.flatmap(st.sampled_from))
                statement(tables, data.draw)
                tables.check()

    run()
