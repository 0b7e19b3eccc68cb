"""CHECK constraints: created by DDL, enforced by Spark and Python; the key is reported as PRIMARY KEY."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from tableformat import Catalog, Table, open_catalog
from tableformat.errors import CommitConflictError, UnsupportedFeatureError

POSITIVE = "tableformat.check.positive"


@pytest.fixture
def table(spark: SparkSession, lake: Catalog, namespace: str) -> Table:
    """One row: 1, 1.0."""
    spark.sql(f"""
        CREATE TABLE lake.{namespace}.t
        (id BIGINT NOT NULL, v DOUBLE, PRIMARY KEY (id), CONSTRAINT positive CHECK (v > 0))
    """)
    spark.sql(f"INSERT INTO lake.{namespace}.t VALUES (1, 1)")
    return lake.load_table((namespace, "t"))


def values(table: Table) -> list[float | None]:
    return table.refresh().scan().to_arrow().sort_by("id")["v"].to_pylist()


def rows(*of: tuple[int, float | None]) -> pa.Table:
    return pa.table({"id": pa.array([n for n, _ in of], pa.int64()), "v": pa.array([v for _, v in of], pa.float64())})


# -- DDL


@pytest.mark.since_spark("4.1", "CHECK constraints")
def test_constraint_is_a_table_property(table: Table) -> None:
    """CK-1."""
    assert table.properties[POSITIVE] == "v > 0"
    assert '"gt"' in table.properties["tableformat.check-expression.positive"]


@pytest.mark.since_spark("4.1", "CHECK constraints")
def test_constraints_are_described(spark: SparkSession, table: Table) -> None:
    """CK-1, CK-5."""
    described = {row.col_name: row.data_type for row in spark.sql(f"DESCRIBE EXTENDED lake.{table.name}").collect()}
    assert "CHECK (v > 0) ENFORCED" in described["positive"]
    assert "PRIMARY KEY (id) NOT ENFORCED" in described["key"]


@pytest.mark.since_spark("4.1", "CHECK constraints")
def test_constraint_added_and_dropped(spark: SparkSession, table: Table) -> None:
    with pytest.raises(Exception, match="NEW_CHECK_CONSTRAINT_VIOLATION"):
        spark.sql(f"ALTER TABLE lake.{table.name} ADD CONSTRAINT large CHECK (v > 5)")
    spark.sql(f"ALTER TABLE lake.{table.name} ADD CONSTRAINT small CHECK (v < 5)")
    with pytest.raises(AnalysisException, match="already"):
        spark.sql(f"ALTER TABLE lake.{table.name} ADD CONSTRAINT SMALL CHECK (v < 6)")
    with pytest.raises(Exception, match="CHECK_CONSTRAINT_VIOLATION"):
        spark.sql(f"INSERT INTO lake.{table.name} VALUES (2, 7)")
    spark.sql(f"ALTER TABLE lake.{table.name} DROP CONSTRAINT small")
    spark.sql(f"ALTER TABLE lake.{table.name} DROP CONSTRAINT IF EXISTS small")
    with pytest.raises(AnalysisException, match=r"no CHECK constraint 'small'.*It has: positive"):
        spark.sql(f"ALTER TABLE lake.{table.name} DROP CONSTRAINT small")
    spark.sql(f"INSERT INTO lake.{table.name} VALUES (2, 7)")
    assert values(table) == [1.0, 7.0]
    assert [name for name in table.properties if "check" in name and "small" in name] == []


@pytest.mark.since_spark("4.1", "CHECK constraints")
def test_replaced_table_has_the_new_constraints(spark: SparkSession, table: Table) -> None:
    spark.sql(f"CREATE OR REPLACE TABLE lake.{table.name} (a INT, CONSTRAINT even CHECK (a % 2 = 0))")
    assert [name for name in table.refresh().properties if name.startswith("tableformat.check")] == [
        "tableformat.check.even"
    ]


@pytest.mark.parametrize("constraint", ["UNIQUE (a)", "CHECK (a > 0) NOT ENFORCED"])
def test_unenforceable_constraints_are_rejected(spark: SparkSession, namespace: str, constraint: str) -> None:
    """CK-5."""
    with pytest.raises(AnalysisException):
        spark.sql(f"CREATE TABLE lake.{namespace}.n (a INT, {constraint})")


# -- Spark


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO lake.{} VALUES (2, -1)",
        "INSERT OVERWRITE lake.{} VALUES (2, -1)",
        "UPDATE lake.{} SET v = -1 WHERE id = 1",
        "MERGE INTO lake.{} t USING (SELECT 1L id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = -1",
        "MERGE INTO lake.{} t USING (SELECT 2L id, -1D v) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    ],
)
@pytest.mark.since_spark("4.1", "CHECK constraints")
def test_spark_rejects_rows_that_violate_a_constraint(spark: SparkSession, table: Table, statement: str) -> None:
    """CK-2."""
    with pytest.raises(Exception, match="CHECK_CONSTRAINT_VIOLATION"):
        spark.sql(statement.format(table.name))
    assert values(table) == [1.0]


@pytest.mark.since_spark("4.1", "CHECK constraints")
def test_stream_without_constraint_checks_is_rejected(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    """CK-2."""
    source = tmp_path / "source"
    spark.sql("SELECT 2L id, -1D v").coalesce(1).write.json(str(source))
    stream = spark.readStream.schema("id BIGINT, v DOUBLE").json(str(source)).coalesce(1)
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    with pytest.raises(Exception, match="foreachBatch"):
        writer.toTable(f"lake.{table.name}").awaitTermination()
    each = stream.writeStream.option("checkpointLocation", str(tmp_path / "each")).trigger(availableNow=True)
    with pytest.raises(Exception, match="CHECK_CONSTRAINT_VIOLATION"):
        each.foreachBatch(lambda rows, _: rows.writeTo(f"lake.{table.name}").append()).start().awaitTermination()
    assert values(table) == [1.0]


# -- Python


@pytest.mark.since_spark("4.1", "CHECK constraints")
def test_rows_that_violate_a_constraint_can_be_diverted(table: Table) -> None:
    result = table.append(rows((2, 2.0), (3, -1.0), (4, float("nan"))), on_refused="divert")
    assert result.refused is not None
    assert result.refused["id"].to_pylist() == [3]
    assert len(values(table)) == 3


@pytest.mark.since_spark("4.1", "CHECK constraints")
def test_spark_only_condition_rejects_python_writes(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """CK-2: never silently broken."""
    spark.sql(f"CREATE TABLE lake.{namespace}.o (a INT, b INT, CONSTRAINT ordered CHECK (a < b))")
    spark.sql(f"INSERT INTO lake.{namespace}.o VALUES (1, 2)")
    table = lake.load_table((namespace, "o"))
    assert "tableformat.check-expression.ordered" not in table.properties
    one = pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([2], pa.int32())})
    with pytest.raises(UnsupportedFeatureError, match="'ordered', a < b, is enforced only by Spark"):
        table.append(one)
    table.delete("a = 1")
    assert table.scan().to_arrow().num_rows == 0
    spark.sql(f"ALTER TABLE lake.{namespace}.o DROP CONSTRAINT ordered")
    table.refresh().append(one)


@pytest.mark.since_spark("4.1", "CHECK constraints")
def test_conditions_mean_the_same_in_spark_and_python(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """If Python accepts a condition at all, it means the same as in Spark."""
    candidates = [(n, v) for n, v in enumerate([None, -1.0, 0.0, 0.5, 3.0, float("nan")])]
    conditions = ["v > 0", "NOT v > 0", "v IS NULL OR v < 2", "v IN (0D, 3D)", "NOT v IN (0D, 3D)", "v <=> 3", "v <> 3"]
    for index, condition in enumerate(conditions):
        name = f"c{index}"
        spark.sql(f"CREATE TABLE lake.{namespace}.{name} (id BIGINT, v DOUBLE, CONSTRAINT c CHECK ({condition}))")
        table = lake.load_table((namespace, name))
        spark.createDataFrame(candidates, "id BIGINT, v DOUBLE").createOrReplaceTempView("candidates")
        expected = [
            row.id for row in spark.sql(f"SELECT id FROM candidates WHERE coalesce({condition}, true)").collect()
        ]
        refused = table.append(rows(*candidates), on_refused="divert").refused
        taken = sorted(table.scan().to_arrow()["id"].to_pylist())
        assert taken == sorted(expected), condition
        assert len(taken) + (0 if refused is None else refused.num_rows) == len(candidates)


# -- concurrent changes


@pytest.mark.since_spark("4.1", "CHECK constraints")
def test_rows_written_under_older_constraints_conflict(spark: SparkSession, table: Table, lake: Catalog) -> None:
    """CK-3: for Spark, for Python, and for rows that other processes wrote."""
    warehouse = unquote(str(lake.iceberg.properties["warehouse"]).removeprefix("file://"))
    name = table.name

    def drop(v):  # type: ignore[no-untyped-def]  # With hints it would be taken for a function of columns.
        with open_catalog(warehouse) as catalog:
            other = catalog.load_table(name)
            if POSITIVE in other.properties:
                with other.iceberg.transaction() as transaction:
                    transaction.remove_properties(POSITIVE)
        return v

    spark.udf.register("drop_check", udf(drop, "double"))
    draft = table.new_write()
    written = draft.write(rows((3, 3.0)))
    batches = rows((4, 4.0)).to_batches()

    def late():  # type: ignore[no-untyped-def]
        yield from batches
        drop(None)

    with pytest.raises(CommitConflictError):
        table.append(pa.RecordBatchReader.from_batches(batches[0].schema, late()))
    with table.iceberg.transaction() as transaction:
        transaction.set_properties({POSITIVE: "v > 0"})
    with pytest.raises(AnalysisException, match=r"CHECK constraints of .* were changed") as error:
        spark.sql(f"INSERT INTO lake.{name} SELECT 2L, drop_check(2D)")
    assert error.value.getSqlState() == "40001"
    with pytest.raises(CommitConflictError):
        table.refresh().commit(draft, [written])
    assert values(table) == [1.0]


@pytest.mark.since_spark("4.1", "CHECK constraints")
def test_empty_message_marker_is_not_checked(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """CK-2, CP-66: a row that only names a replaced prefix is not added, in Spark and in Python."""
    schema = pa.schema([("a", pa.string()), ("b", pa.int64()), ("v", pa.float64())])
    table = lake.create_table((namespace, "m"), schema, key=["a", "b"])
    spark.sql(f"ALTER TABLE lake.{table.name} ADD CONSTRAINT given CHECK (v IS NOT NULL AND v > 0)")

    def replaced_by(*rows: tuple[str, int | None, float | None]) -> None:
        frame = spark.createDataFrame(list(rows), "a string, b long, v double")
        frame.writeTo(f"lake.{table.name}").option("replace-prefix", "a").append()

    replaced_by(("x", 1, 1.0), ("y", 1, 1.0), ("z", 1, 1.0))
    replaced_by(("x", None, None), ("y", 2, 2.0))
    table.refresh().replace(pa.table({"a": ["z"], "b": [None], "v": [None]}, schema), prefix=["a"])
    assert table.refresh().scan().to_arrow().to_pylist() == [{"a": "y", "b": 2, "v": 2.0}]
    for row in (("y", 3, None), ("y", 3, -1.0)):
        with pytest.raises(Exception, match="CHECK_CONSTRAINT_VIOLATION"):
            replaced_by(row)
    assert table.refresh().scan().count() == 1
