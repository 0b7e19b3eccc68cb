"""SP-94: matching rows in all files are changed, also if the column that rules out files is null."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tableformat import Catalog

VALUES = {
    "DECIMAL(9,2)": ["-0.01", "NULL", "0.00", "NULL", "9999999.99"],
    "DOUBLE": ["double('NaN')", "NULL", "-0.0D", "0.0D", "1.5D"],
}
STATEMENTS = {
    "UPDATE {t} SET id = 'z' WHERE id > ''": [],
    "UPDATE {t} SET id = 'z' WHERE length(id) > 0 AND n <> 4": [4],
    "UPDATE {t} SET id = 'z' WHERE n IN (SELECT n FROM {t})": [],
    "DELETE FROM {t} WHERE coalesce(x, 1) > -1 AND length(id) > 0": [],
    "MERGE INTO {t} t USING (SELECT explode(array(0, 1, 2)) n) s ON t.n = s.n WHEN MATCHED THEN UPDATE SET id = 'z'": [
        3,
        4,
    ],
    "MERGE INTO {t} t USING (SELECT n, x FROM {t}) s ON t.n = s.n AND t.x <=> s.x WHEN MATCHED THEN DELETE": [],
}


@pytest.mark.parametrize(
    ("mode", "by", "kinds"),
    [("merge-on-read", "x", ["DECIMAL(9,2)", "DOUBLE"]), ("copy-on-write", "bucket(2, x)", ["DECIMAL(9,2)"])],
)
def test_rows_in_null_partitions_are_changed(
    spark: SparkSession, lake: Catalog, namespace: str, mode: str, by: str, kinds: list[str]
) -> None:
    """SP-94: since Spark 4.2 an UPDATE, DELETE or MERGE passed over the files of a partition of null."""
    modes = ", ".join(f"'write.{each}.mode' = '{mode}'" for each in ("delete", "update", "merge"))
    number = 0
    for kind in kinds:
        values = VALUES[kind]
        listed = ", ".join(f"('a{n}', {n}, {value})" for n, value in enumerate(values))
        for statement, left in STATEMENTS.items():
            name, number = f"{namespace}.t{number}", number + 1
            columns = f"id STRING NOT NULL, n INT NOT NULL, x {kind}, PRIMARY KEY (id, n)"
            spark.sql(f"CREATE TABLE lake.{name} ({columns}) PARTITIONED BY ({by}) TBLPROPERTIES ({modes})")
            spark.sql(f"INSERT INTO lake.{name} VALUES {listed}")
            spark.sql(statement.format(t=f"lake.{name}"))
            rows = lake.load_table(name).scan().to_arrow().to_pylist()
            assert sorted(row["n"] for row in rows if row["id"] != "z") == left, (kind, statement)
            assert len(rows) == (len(left) if "DELETE" in statement else len(values)), (kind, statement)
