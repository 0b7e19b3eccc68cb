"""Reads Iceberg tables with a library of Python, and prints a line of JSON for each.

    python read_tables.py pyiceberg METADATA.json ...

Runs in any environment that has the library: it imports nothing but that. The form of a line is that of
specs/corpus/README.md, "Readers".
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import re
import sqlite3
import sys
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from decimal import Decimal
from importlib.metadata import version
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

Rows = Iterable[Mapping[str, Any]]
Read = Callable[[str], Rows]


def with_tableformat() -> tuple[str, Read]:
    import tableformat

    return (
        f"tableformat {version('tableformat')}",
        lambda path: tableformat.read_metadata(path).scan().to_arrow().to_pylist(),
    )


def with_pyiceberg() -> tuple[str, Read]:
    from pyiceberg.table import StaticTable

    return (
        f"PyIceberg {version('pyiceberg')}",
        lambda path: StaticTable.from_metadata(path).scan().to_arrow().to_pylist(),
    )


def with_polars() -> tuple[str, Read]:
    import polars

    return f"Polars {version('polars')}", lambda path: polars.scan_iceberg(path).collect().to_arrow().to_pylist()


def with_duckdb() -> tuple[str, Read]:
    """DuckDB's own extension, from the packages `duckdb-extension-iceberg` and `duckdb-extension-avro`.

    Each table has a connection of its own: after an internal error a connection answers nothing more.
    """
    import duckdb

    extensions = [_duckdb_extension(name, duckdb.__version__) for name in ("avro", "iceberg")]

    def read(path: str) -> Rows:
        with duckdb.connect() as connection:
            for extension in extensions:
                connection.load_extension(extension)
            found: Any = connection.execute("SELECT * FROM iceberg_scan(?)", [path])
            rows: Rows = found.to_arrow_table().to_pylist()
        return rows

    return f"DuckDB iceberg {version('duckdb-extension-iceberg')}", read


def _duckdb_extension(name: str, duckdb_version: str) -> str:
    spec = find_spec(f"duckdb_extension_{name}")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"duckdb-extension-{name} is not installed")
    return str(Path(spec.origin).parent / "extensions" / f"v{duckdb_version}" / f"{name}.duckdb_extension")


def with_pyiceberg_core() -> tuple[str, Read]:
    """iceberg-rust, through its provider of tables for the version of DataFusion that it was built with."""
    import datafusion
    from pyiceberg_core.datafusion import IcebergDataFusionTable

    context = datafusion.SessionContext()

    def read(path: str) -> Rows:
        table = IcebergDataFusionTable(["db", "t"], Path(path).absolute().as_uri(), {})
        rows: Rows = context.read_table(table).to_arrow_table().to_pylist()
        return rows

    return f"iceberg-rust (pyiceberg-core {version('pyiceberg-core')})", read


def with_spark() -> tuple[str, Read]:
    """Spark with Iceberg's runtime, the jar that ICEBERG_SPARK_JAR names."""
    from pyspark.sql import SparkSession

    jar = os.environ["ICEBERG_SPARK_JAR"]
    settings: dict[str, bool | float | int | str | None] = {
        "spark.jars": jar,
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
    }
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()

    def read(path: str) -> Rows:
        return [row.asDict(recursive=True) for row in spark.read.format("iceberg").load(path).collect()]

    iceberg = Path(jar).stem.rpartition("-")[2]
    return f"Spark {spark.version} with Iceberg {iceberg}", read


def with_flink() -> tuple[str, Read]:
    """Flink's batch mode with the jars that HADOOP_CLASSPATH names: Iceberg's runtime, and a driver for SQLite, where a
    catalog makes names of metadata files. Rows are taken as Java has them: PyFlink's own way lacks types.
    """
    from pyflink.table import EnvironmentSettings, TableEnvironment

    catalog = Path(tempfile.mkdtemp(prefix="flink-")) / "catalog.db"
    numbers = count()
    with closing(sqlite3.connect(catalog)) as connection:
        connection.execute(
            "CREATE TABLE iceberg_tables (catalog_name TEXT, table_namespace TEXT, table_name TEXT, "
            "metadata_location TEXT, previous_metadata_location TEXT, iceberg_type TEXT)"
        )
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.get_config().set("parallelism.default", "1")
    environment.execute_sql(
        "CREATE CATALOG corpus WITH ('type' = 'iceberg', 'catalog-impl' = 'org.apache.iceberg.jdbc.JdbcCatalog', "
        f"'uri' = 'jdbc:sqlite:{catalog}', 'warehouse' = 'file://{catalog.parent}', 'jdbc.schema-version' = 'V1')"
    )

    def read(path: str) -> Rows:
        name = f"t{next(numbers)}"
        row = ("corpus", "db", name, Path(path).absolute().as_uri(), None, "TABLE")
        with closing(sqlite3.connect(catalog)) as connection, connection:
            connection.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?, ?)", row)
        found = environment._j_tenv.executeSql(f"SELECT * FROM corpus.db.{name}").collect()
        try:
            return list(iter(lambda: _of_java(found.next()) if found.hasNext() else None, None))
        finally:
            found.close()

    iceberg = next(re.finditer(r"iceberg-flink-runtime-[\d.]+-([\d.]+)\.jar", _jars_of_flink()))[1]
    return f"Flink {version('apache-flink')} with Iceberg {iceberg}", read


def _jars_of_flink() -> str:
    directories = os.environ["HADOOP_CLASSPATH"].split(os.pathsep)
    return " ".join(str(jar) for each in directories for jar in Path(each).parent.glob("*.jar"))


def _of_java(value: Any) -> Any:
    """A value of Flink's rows; Py4J has made Python's of the plain ones."""
    from py4j.java_collections import JavaArray, JavaMap
    from py4j.java_gateway import JavaObject

    match value:
        case JavaMap():
            return [[_of_java(key), _of_java(value[key])] for key in value]
        case JavaArray():
            return [_of_java(element) for element in value]
        case JavaObject() if value.getClass().getSimpleName() == "Row":
            return {name: _of_java(value.getField(name)) for name in value.getFieldNames(True)}
        case JavaObject():
            return value.toString()
        case _:
            return value


READERS: Mapping[str, Callable[[], tuple[str, Read]]] = {
    "tableformat": with_tableformat,
    "pyiceberg": with_pyiceberg,
    "polars": with_polars,
    "duckdb": with_duckdb,
    "pyiceberg-core": with_pyiceberg_core,
    "spark": with_spark,
    "flink": with_flink,
}


def json_value(value: Any) -> Any:
    """A value in the form of the corpus."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
        case Decimal() | uuid.UUID():
            return str(value)
        case dt.date() | dt.time() | bytes() | bytearray():
            return value.hex() if isinstance(value, bytes | bytearray) else value.isoformat()
        case dict():
            return {name: json_value(inner) for name, inner in value.items()}
        case list() | tuple():
            return [json_value(inner) for inner in value]
        case _:
            return value


def answer(read: Read, path: str) -> dict[str, Any]:
    try:
        return {"rows": [json_value(dict(row)) for row in read(path)]}
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return {"error": f"{type(error).__name__}: {error}"}


def main(name: str, paths: list[str]) -> None:
    warnings.simplefilter("ignore")
    reader, read = READERS[name]()
    for path in paths:
        sys.stdout.write(json.dumps({"reader": reader, **answer(read, path)}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
