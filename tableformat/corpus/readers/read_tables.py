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
import sys
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from importlib.metadata import version
from importlib.util import find_spec
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


READERS: Mapping[str, Callable[[], tuple[str, Read]]] = {
    "tableformat": with_tableformat,
    "pyiceberg": with_pyiceberg,
    "polars": with_polars,
    "duckdb": with_duckdb,
    "pyiceberg-core": with_pyiceberg_core,
    "spark": with_spark,
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
