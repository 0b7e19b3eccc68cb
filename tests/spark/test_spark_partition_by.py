"""PARTITION BY HASH, RANGE and LIST in CREATE TABLE."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table


def layout(table: Table) -> list[tuple[str, str]]:
    names = {field.field_id: field.name for field in table.metadata.schema().fields}
    return [(str(field.transform), names[field.source_id]) for field in table.metadata.spec().fields]


def partitions(table: Table) -> list[str]:
    found: list[str] = table.range_partitions.list()["partition"].to_pylist()
    return found


def test_hash_and_range_together(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SQ-40: HASH is a bucket field; a drop of a range takes the files of all buckets."""
    name = f"lake.{namespace}.orders"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL, customer BIGINT, year INT NOT NULL) TBLPROPERTIES ('a' = 'b') "
        "PARTITION BY HASH (id) PARTITIONS 4, HASH (customer) PARTITIONS 2, "
        "RANGE (year) (PARTITION 2011 <= VALUES < 2016, PARTITION VALUE = 2020) COMMENT 'orders'"
    )
    made = lake.load_table((namespace, "orders"))
    assert layout(made)[:2] == [("bucket[4]", "id"), ("bucket[2]", "customer")]
    assert partitions(made) == ["[2011, 2016)", "VALUE = 2020"]
    assert (made.properties["a"], made.properties["comment"]) == ("b", "orders")
    spark.sql(f"INSERT INTO {name} VALUES (1, 1, 2011), (2, 2, 2015), (3, 3, 2020)")
    with pytest.raises(AnalysisException, match="no range partition covers year = 2017"):
        spark.sql(f"INSERT INTO {name} VALUES (4, 4, 2017)")
    spark.sql(f"ALTER TABLE {name} DROP RANGE PARTITION 2011 <= VALUES < 2016")
    assert [row.id for row in spark.table(name).collect()] == [3]
    assert not made.refresh().inspect.delete_files().num_rows


def test_show_create_table_recreates_the_table(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SQ-40: with one HASH, as Spark 3.5 prints no more."""
    name = f"lake.{namespace}.orders"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL, c STRING NOT NULL) "
        "PARTITION BY HASH (id) PARTITIONS 4, LIST (c) (PARTITION VALUES IN ('Asia', 'Europe'))"
    )
    made = lake.load_table((namespace, "orders"))
    shown = spark.sql(f"SHOW CREATE TABLE {name}").first()
    assert shown is not None
    spark.sql(shown[0].replace(f"{namespace}.orders", f"{namespace}.again"))
    again = lake.load_table((namespace, "again"))
    assert sorted(layout(again)) == sorted(layout(made))
    assert partitions(again) == partitions(made) == ["VALUE = 'Asia'", "VALUE = 'Europe'"]


def test_hash_without_range(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SQ-40: buckets without range partitions, also with rows of a query."""
    name = f"lake.{namespace}.lines"
    spark.sql(f"CREATE TABLE {name} PARTITION BY HASH (`the id`) PARTITIONS 3 AS SELECT id AS `the id` FROM range(5)")
    made = lake.load_table((namespace, "lines"))
    assert (layout(made), made.scan().count()) == ([("bucket[3]", "the id")], 5)
    assert not [each for each in made.properties if "range-partitions" in each]


def test_list_values_become_ranges(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SQ-40: values that follow one another are one range, others one range each."""
    for clause, column, expected in (
        (
            "LIST (c) (PARTITION VALUES IN ('Asia'), PARTITION VALUES IN ('Europe', \"it's far\"))",
            "STRING",
            ["VALUE = 'Asia'", "VALUE = 'Europe'", "VALUE = 'it''s far'"],
        ),
        (
            "LIST (c) (PARTITION VALUES IN (3, -1, 1, 2), PARTITION VALUES IN (7))",
            "INT",
            ["VALUE = -1", "[1, 3]", "VALUE = 7"],
        ),
        (
            "HASH (id) PARTITIONS 2, LIST (c) (PARTITION VALUES IN (DATE '2024-02-29', DATE '2024-03-01'))",
            "DATE",
            ["[2024-02-29, 2024-03-01]"],
        ),
        (
            "LIST (c, id) (PARTITION VALUES IN (('Asia', 1), ('Asia', 2)))",
            "STRING",
            ["VALUE = ('Asia', 1)", "VALUE = ('Asia', 2)"],
        ),
    ):
        spark.sql(
            f"CREATE OR REPLACE TABLE lake.{namespace}.t (c {column} NOT NULL, id INT NOT NULL) PARTITION BY {clause}"
        )
        assert partitions(lake.load_table((namespace, "t"))) == expected
    spark.sql(
        f"CREATE OR REPLACE TABLE lake.{namespace}.t (c STRING NOT NULL) "
        "PARTITION BY LIST (c) (PARTITION VALUES IN ('a', 'b'))"
    )
    spark.sql(f"INSERT INTO lake.{namespace}.t VALUES ('a'), ('b')")
    with pytest.raises(AnalysisException, match="no range partition covers c = 'ab'"):
        spark.sql(f"INSERT INTO lake.{namespace}.t VALUES ('ab')")


def test_invalid_partition_by_clauses_are_rejected(spark: SparkSession, namespace: str) -> None:
    """SQ-2, SQ-40"""
    for clause, match in (
        ("HASH (id, c) PARTITIONS 4", "near ',': expected '\\)'"),
        ("HASH (id) PARTITIONS many", "near 'many': expected the number of partitions"),
        ("HASH (id) PARTITIONS 4, id", "near 'id': expected HASH, RANGE or LIST"),
        ("LIST (c) (PARTITION VALUES IN (NULL))", "near 'NULL': expected a constant"),
        ("LIST (c) (PARTITION VALUES IN ())", "near '\\)': expected a constant"),
        ("LIST (c) (PARTITION VALUE = 1)", "near 'VALUE': expected VALUES"),
        (
            "RANGE (c) (PARTITION VALUES < 1), LIST (c) (PARTITION VALUES IN (1))",
            "near 'LIST': expected HASH: RANGE or LIST is allowed only once",
        ),
        ("HASH (id) PARTITIONS 4 PARTITIONED BY (c)", "PARTITIONED BY"),
    ):
        with pytest.raises(ParseException, match=match):
            spark.sql(f"CREATE TABLE lake.{namespace}.t (c INT NOT NULL, id INT NOT NULL) PARTITION BY {clause}")
    with pytest.raises(AnalysisException, match="overlap"):
        spark.sql(
            f"CREATE TABLE lake.{namespace}.t (c INT NOT NULL) PARTITION BY LIST (c) "
            "(PARTITION VALUES IN (1, 2), PARTITION VALUES IN (2))"
        )
