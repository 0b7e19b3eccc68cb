"""Table columns with the same names as the metadata columns that Spark offers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from renamed_columns import rename_as_another_writer
from stream_runs import Source

from tableformat import Catalog, Table

NAMES = {
    "_deleted": (pa.bool_(), [True, False, None]),
    "_pos": (pa.int64(), [70, 80, None]),
    "_file": (pa.string(), ["x", "y", None]),
    "_spec_id": (pa.int32(), [7, 8, None]),
    "_partition": (pa.string(), ["p", "q", None]),
    "_row_id": (pa.int64(), [70, 80, None]),
    "_last_updated_sequence_number": (pa.int64(), [70, 80, None]),
}


def table_with(lake: Catalog, namespace: str, version: str) -> Table:
    """One column of each name, ids 0 to 8; of each file the middle row is deleted, by position, key or range."""
    given = [pa.field(f"c{name}", kind) for name, (kind, _) in NAMES.items()]
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), *given])
    table = lake.create_table((namespace, "t"), schema, key=["id"], properties={"format-version": version})
    rename_as_another_writer(table, {f"c{name}": name for name in NAMES})
    schema = table.schema
    values = {name: given for name, (_, given) in NAMES.items()}
    for first in (0, 3, 6):
        table.append(pa.table({"id": [first, first + 1, first + 2], **values}, schema=schema))
    table.delete("id = 1", mode="scan")
    table.delete("id = 4", mode="equality")
    table.delete_range(lower=(7,), upper=(8,))
    return table


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.refresh().scan().to_arrow().sort_by("id").to_pylist()]


@pytest.mark.parametrize("version", [pytest.param("2", marks=pytest.mark.long), "3"])
def test_table_column_takes_precedence_over_metadata_column(
    spark: SparkSession, lake: Catalog, namespace: str, tmp_path: Path, version: str
) -> None:
    """SP-87: `_deleted` used to bring back deleted rows, and `_pos` returned positions instead of the stored values."""
    table = table_with(lake, namespace, version)
    rows = rows_of(table)
    assert [row[0] for row in rows] == [0, 2, 3, 5, 6, 8]
    name = f"lake.{table.name}"
    assert [tuple(row) for row in spark.sql(f"SELECT * FROM {name} ORDER BY id").collect()] == rows
    for place, column in enumerate(NAMES, start=1):
        found = spark.sql(f"SELECT {column} FROM {name} WHERE {column} IS NOT NULL ORDER BY id").collect()
        assert [row[0] for row in found] == [row[place] for row in rows if row[place] is not None]
    changes = spark.sql(f"SELECT * FROM {name}.changes WHERE _change_type = 'INSERT' ORDER BY id").collect()
    assert [tuple(row)[: len(NAMES) + 1] for row in changes if row.id in {row[0] for row in rows}] == rows
    (batch,) = Source(spark, name, tmp_path / "rows").batches()
    assert batch == rows
    spark.sql(f"INSERT INTO {name} SELECT id + 10 AS id, {', '.join(NAMES)} FROM {name}")
    assert rows_of(table)[len(rows) :] == [(row[0] + 10, *row[1:]) for row in rows]


def test_row_level_statement_rejects_shadowed_position_columns(
    spark: SparkSession, lake: Catalog, namespace: str
) -> None:
    """SP-87: Spark would take the table's column for the position of the row; the error names the column."""
    for place, column in enumerate(("_pos", "_FILE")):
        schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.int64(), nullable=False)])
        table = lake.create_table((namespace, f"t{place}"), schema)
        rename_as_another_writer(table, {"v": column})
        table.append(pa.table({"id": [1, 2], column: [1, 0]}, schema=table.schema))
        name = f"lake.{table.name}"
        for statement in (f"UPDATE {name} SET id = 3 WHERE id = 1", f"DELETE FROM {name} WHERE id % 2 = 1"):
            with pytest.raises(AnalysisException, match=f"RENAME COLUMN `{column}`") as caught:
                spark.sql(statement)
            assert caught.value.getCondition() == "TABLEFORMAT_UNSUPPORTED"
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN {column} TO v")
        spark.sql(f"UPDATE {name} SET id = 3 WHERE id = 1")
        assert rows_of(table) == [(2, 0), (3, 1)]
        rename_as_another_writer(table.refresh(), {"v": "_deleted"})
        spark.sql(f"REFRESH TABLE {name}")
        spark.sql(f"DELETE FROM {name} WHERE _deleted = 1")
        assert rows_of(table) == [(2, 0)]
        spark.sql(f"UPDATE {name} SET id = 4, _deleted = _deleted + 5 WHERE _deleted = 0")
        assert rows_of(table) == [(4, 5)]
