"""Tables in Spark, with one session for each project: the same statements, some with other names in some projects."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from spark_measuring import Stopwatch, session_builder

from spark_ext import configure

_MEMORY = "3g"
_ICEBERG = "org.apache.iceberg.spark"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The differences between the projects."""

    namespace: str
    ending: str
    """The end of CREATE TABLE."""
    compaction: str
    versions: str
    """A query whose first column is the newest version of the table."""
    options: dict[str, str] = field(default_factory=dict)


_MERGE_ON_READ = ", ".join(f"'write.{verb}.mode' = 'merge-on-read'" for verb in ("delete", "update", "merge"))
DIALECTS = {
    "tableformat": Dialect(
        namespace="lake.db",
        ending="",
        compaction="CALL lake.system.rewrite_data_files('db.{table}')",
        versions="SELECT snapshot_id FROM lake.db.{table}.history ORDER BY made_current_at DESC LIMIT 1",
    ),
    "Iceberg": Dialect(
        namespace="lake.db",
        ending=f"USING iceberg TBLPROPERTIES ('format-version' = '3', {_MERGE_ON_READ})",
        compaction="CALL lake.system.rewrite_data_files('db.{table}')",
        versions="SELECT snapshot_id FROM lake.db.{table}.history ORDER BY made_current_at DESC LIMIT 1",
        options={
            "spark.sql.extensions": f"{_ICEBERG}.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.lake": f"{_ICEBERG}.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
        },
    ),
    "Delta": Dialect(
        namespace="db",
        ending="USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        compaction="OPTIMIZE db.{table}",
        versions="DESCRIBE HISTORY db.{table} LIMIT 1",
        options={
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    ),
    "bare files": Dialect(namespace="", ending="", compaction="", versions=""),
}


class OnSpark:
    """`dialect` is a name of `DIALECTS`; the project's jars are in the folder TABLEFORMAT_BENCH_JARS."""

    lacks: ClassVar[dict[str, str]] = {}

    def __init__(self, directory: Path, dialect: str) -> None:
        self._dialect, self._name, self._directory = DIALECTS[dialect], dialect, directory
        builder = session_builder(directory / "lake", memory=_MEMORY)
        for name, value in self._dialect.options.items():
            builder = builder.config(name, value)
        if dialect == "tableformat":
            builder = configure(builder, catalog="lake", warehouse=directory / "lake")
        elif dialect != "bare files":
            jars = sorted((Path(os.environ["TABLEFORMAT_BENCH_JARS"]) / dialect.lower()).glob("*.jar"))
            builder = builder.config("spark.jars", ",".join(map(str, jars)))
            builder = builder.config("spark.sql.catalog.lake.warehouse", str(directory / "lake"))
        self._spark = builder.getOrCreate()
        self._spark.sparkContext.setLogLevel("OFF")
        self.cpu_seconds = Stopwatch(self._spark).cpu_seconds
        if self._dialect.namespace:
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._dialect.namespace}")

    def versions(self) -> dict[str, str]:
        jars = str(self._spark.conf.get("spark.jars", "") or "")
        named = [
            Path(jar).stem.rpartition("-")
            for jar in jars.split(",")
            if Path(jar).name.startswith(("delta-", "iceberg-"))
        ]
        return {"Spark": self._spark.version, **{name: version for name, _, version in named if "storage" not in name}}

    def view(self, name: str, path: str) -> None:
        """Rows from elsewhere, by a name."""
        self._spark.read.parquet(path).createOrReplaceTempView(name)

    def table(self, name: str, columns: str, key: str) -> None:
        """Without rows."""
        if self._name == "tableformat":
            columns = f"{columns}, CONSTRAINT pk PRIMARY KEY ({key})"
        self._spark.sql(f"CREATE TABLE {self._dialect.namespace}.{name} ({columns}) {self._dialect.ending}")

    def append(self, name: str, query: str) -> None:
        """The rows of a query."""
        if self._dialect.namespace:
            self._spark.sql(f"INSERT INTO {self._dialect.namespace}.{name} {query}")
        else:
            self._spark.sql(query).write.mode("overwrite").option("compression", "zstd").parquet(
                f"{self._directory}/{name}"
            )

    def sql(self, statement: str, tables: list[str], at: dict[str, str] | None = None) -> dict[str, Any]:
        """The rows that a statement returns; `{name}` in it stands for each of the tables, at a version if one is
        given."""
        names = {}
        for table in tables:
            names[table] = f"{self._dialect.namespace}.{table}" if self._dialect.namespace else table
            if at is not None:
                names[table] += f" VERSION AS OF {at[table]}"
        rows = self._spark.sql(statement.format(**names)).collect()
        return {"rows": [[_plain(value) for value in row] for row in rows]}

    def replace_messages(self, name: str, query: str) -> None:
        """Replace the rows of each (id1, id2) that occurs in the query by the rows of the query."""
        table = f"{self._dialect.namespace}.{name}"
        rows = self._spark.sql(query)
        if self._name == "tableformat":
            rows.writeTo(table).option("replace-prefix", "id1,id2").append()
            return
        rows.select("id1", "id2").distinct().createOrReplaceTempView("replaced")
        self._spark.sql(
            f"MERGE INTO {table} t USING replaced s ON t.id1 = s.id1 AND t.id2 = s.id2 WHEN MATCHED THEN DELETE"
        )
        rows.createOrReplaceTempView("incoming")
        self._spark.sql(f"INSERT INTO {table} FROM incoming")

    def compact(self, name: str) -> None:
        self._spark.sql(self._dialect.compaction.format(table=name)).collect()

    def version(self, name: str) -> str:
        """The newest one, for `sql(at=)`."""
        return str(self._spark.sql(self._dialect.versions.format(table=name)).collect()[0][0])


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str | None) else str(value)
