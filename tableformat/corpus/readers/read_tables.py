"""Reads Iceberg tables with a Python library, and prints one line of JSON for each.

    python read_tables.py pyiceberg METADATA.json ...

It runs in any environment that has the library, and imports nothing else. The form of a line is described in
docs/reference/corpus.md.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
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

TRINO_START_SECONDS = 240
_KEPT: list[Any] = []
"""References to servers that have to live as long as this process: they stop when nothing references them."""


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
    """Planned by PyIceberg, or by the package `polars_iceberg` if POLARS_ICEBERG_PLANNER is `plugin`."""
    import polars

    planner = f" with polars_iceberg {version('polars_iceberg')}" if "POLARS_ICEBERG_PLANNER" in os.environ else ""
    return (
        f"Polars {version('polars')}{planner}",
        lambda path: polars.scan_iceberg(path).collect().to_arrow().to_pylist(),
    )


def with_duckdb() -> tuple[str, Read]:
    """DuckDB's own extension, from the packages `duckdb-extension-iceberg` and `duckdb-extension-avro`.

    Each table has a separate connection, because a connection does not answer any more after an internal error.
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
    """iceberg-rust, through its table provider for the version of DataFusion that it was built with."""
    import datafusion
    from pyiceberg_core.datafusion import IcebergDataFusionTable

    context = datafusion.SessionContext()

    def read(path: str) -> Rows:
        table = IcebergDataFusionTable(["db", "t"], Path(path).absolute().as_uri(), {})
        rows: Rows = context.read_table(table).to_arrow_table().to_pylist()
        return rows

    return f"iceberg-rust (pyiceberg-core {version('pyiceberg-core')})", read


def with_spark() -> tuple[str, Read]:
    """Spark with Iceberg's runtime, the jar at ICEBERG_SPARK_JAR."""
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
    """Flink's batch mode with the jars in HADOOP_CLASSPATH: Iceberg's runtime, and a driver for SQLite, whose catalog
    gives names to metadata files. Rows are read as Java objects, because PyFlink's own conversion lacks types."""
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
    """Converts a value of Flink's rows. Py4J has already converted simple values to Python."""
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


def with_chdb() -> tuple[str, Read]:
    """ClickHouse in this process. Its text columns also hold bytes: `binary` and `fixed` are read as hexadecimal
    digits. Its times have the session's zone, even in columns without one."""
    import chdb
    import pyarrow

    settings = "session_timezone = 'UTC', max_threads = 2"

    def read(path: str) -> Rows:
        location, _, name = str(Path(path).absolute()).rpartition("/metadata/")
        texts = [f"lower(hex({each})) AS {each}" for each in map(_quoted, _binary_columns(path))]
        replaced = f" REPLACE ({', '.join(texts)})" if texts else ""
        table = f"icebergLocal('{location}', SETTINGS iceberg_metadata_file_path = 'metadata/{name}')"
        found = chdb.query(f"SELECT *{replaced} FROM {table} SETTINGS {settings}", "ArrowTable")
        without_zone = {
            field["name"] for field in _current_fields(path) if field["type"] in ("timestamp", "timestamp_ns")
        }
        for number, name in enumerate(found.column_names):
            if name in without_zone:
                unit = found.column(name).type.unit
                found = found.set_column(number, name, found.column(name).cast(pyarrow.timestamp(unit)))
        rows: Rows = found.to_pylist()
        return rows

    # ClickHouse requires the path of a local table to be below the directory of the process.
    os.chdir("/")
    return f"ClickHouse {str(chdb.query('SELECT version()', 'TSV')).strip()} (chDB {version('chdb')})", read


def _current_fields(path: str) -> list[Mapping[str, Any]]:
    """The fields of the table's current schema in its metadata file."""
    metadata = json.loads(Path(path).read_text())
    schemas = {schema["schema-id"]: schema for schema in metadata["schemas"]}
    fields: list[Mapping[str, Any]] = schemas[metadata["current-schema-id"]]["fields"]
    return fields


def _binary_columns(path: str) -> list[str]:
    return [field["name"] for field in _current_fields(path) if str(field["type"]).startswith(("binary", "fixed"))]


def _quoted(name: str) -> str:
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def with_sail() -> tuple[str, Read]:
    """Sail, through a Spark Connect server in this process. It reads the newest metadata of a directory."""
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer("127.0.0.1", 0)
    server.start()
    _KEPT.append(server)
    _, port = server.listening_address
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")

    def read(path: str) -> Rows:
        directory = Path(path).absolute().parent.parent.as_uri()
        rows: Rows = session.read.format("iceberg").load(directory).toArrow().to_pylist()
        return rows

    return f"Sail {version('pysail')}", read


def with_iceberg_go() -> tuple[str, Read]:
    """iceberg-go, through the program at ICEBERG_GO, which is built from the directory `iceberg_go`."""
    import pyarrow.ipc

    program = os.environ["ICEBERG_GO"]

    def read(path: str) -> Rows:
        made = subprocess.run([program, str(Path(path).absolute())], capture_output=True, check=False)
        if made.returncode != 0:
            raise RuntimeError(made.stderr.decode(errors="replace").strip())
        rows: Rows = pyarrow.ipc.open_stream(made.stdout).read_all().to_pylist()
        return rows

    stated = subprocess.run([program, "-version"], capture_output=True, check=True, text=True).stdout.strip()
    return f"iceberg-go {stated.removeprefix('v')}", read


def with_trino() -> tuple[str, Read]:
    """Trino: the server in TRINO_HOME, run by TRINO_JAVA_HOME (Java 24 or newer) for the lifetime of this process."""
    import trino

    home = Path(tempfile.mkdtemp(prefix="trino-"))
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    _configure_trino(home, port)
    server = _start_trino(home)
    _KEPT.append(server)
    connection = trino.dbapi.connect(
        host="127.0.0.1", port=port, user="corpus", catalog="corpus", schema="db", timezone="UTC"
    )

    def run(statement: str) -> list[list[Any]]:
        cursor = connection.cursor()
        cursor.execute(statement)
        rows: list[list[Any]] = cursor.fetchall()
        return rows

    _wait_for_trino(run, server, home)
    numbers = count()

    def read(path: str) -> Rows:
        name, fields = f"t{next(numbers)}", _current_fields(path)
        location = json.loads(Path(path).read_text())["location"]
        run(f"CALL corpus.system.register_table('db', '{name}', '{location}', '{Path(path).name}')")
        columns = ", ".join('"' + field["name"].lower().replace('"', '""') + '"' for field in fields)
        rows = run(f"SELECT {columns} FROM {name}")
        return [
            {field["name"]: _of_trino(field["type"], value) for field, value in zip(fields, row, strict=True)}
            for row in rows
        ]

    return f"Trino {run('SELECT node_version FROM system.runtime.nodes')[0][0]}", read


def _configure_trino(home: Path, port: int) -> None:
    """The directories `etc` and `data`, with a catalog that registers metadata files."""
    texts = {
        "node.properties": f"""
            node.environment=corpus
            node.id=corpus
            node.data-dir={home}/data
            node.internal-address=127.0.0.1
            node.bind-ip=127.0.0.1
        """,
        "config.properties": f"""
            coordinator=true
            node-scheduler.include-coordinator=true
            http-server.http.port={port}
            discovery.uri=http://127.0.0.1:{port}
            query.max-memory=1GB
            query.max-memory-per-node=512MB
        """,
        "jvm.config": """
            -Xmx2G
            -XX:+UseSerialGC
            -Djdk.attach.allowAttachSelf=true
            --sun-misc-unsafe-memory-access=allow
            --enable-native-access=ALL-UNNAMED
            --add-modules=jdk.incubator.vector
        """,
        "catalog/corpus.properties": f"""
            connector.name=iceberg
            iceberg.catalog.type=TESTING_FILE_METASTORE
            hive.metastore.catalog.dir={home}/metastore
            fs.hadoop.enabled=true
            iceberg.register-table-procedure.enabled=true
        """,
    }
    for name, text in texts.items():
        path = home / "etc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(line.strip() for line in text.split("\n") if line.strip()) + "\n")


def _start_trino(home: Path) -> subprocess.Popen[bytes]:
    """A shell that ends together with the server. It stops the server when its standard input is closed, that is,
    whenever this process ends for any reason."""
    launcher = str(Path(os.environ["TRINO_HOME"]) / "bin" / "launcher")
    script = """
        exec 3<&0
        "$0" run --etc-dir "$1/etc" >"$1/log" 2>&1 & server=$!
        (read -r _ <&3; kill $server) &
        wait $server
    """
    java = os.environ["TRINO_JAVA_HOME"]
    path = str(Path(java) / "bin") + os.pathsep + os.environ["PATH"]
    environment = {**os.environ, "JAVA_HOME": java, "PATH": path}
    return subprocess.Popen(["sh", "-c", script, launcher, str(home)], stdin=subprocess.PIPE, env=environment)


def _wait_for_trino(run: Callable[[str], Any], server: subprocess.Popen[bytes], home: Path) -> None:
    deadline = time.monotonic() + TRINO_START_SECONDS
    while True:
        try:
            run("CREATE SCHEMA IF NOT EXISTS corpus.db")
        except Exception as error:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Trino did not start: {(home / 'log').read_text()[-500:]}") from error
            time.sleep(2)
        else:
            return


def _of_trino(kind: Any, value: Any) -> Any:
    """A value in the form of the corpus: rows by name, maps as pairs."""
    if value is None or isinstance(kind, str):
        return value
    match kind["type"]:
        case "struct":
            fields = zip(kind["fields"], value, strict=True)
            return {field["name"]: _of_trino(field["type"], inner) for field, inner in fields}
        case "list":
            return [_of_trino(kind["element"], inner) for inner in value]
        case _:
            return [[_of_trino(kind["key"], key), _of_trino(kind["value"], inner)] for key, inner in value.items()]


READERS: Mapping[str, Callable[[], tuple[str, Read]]] = {
    "tableformat": with_tableformat,
    "pyiceberg": with_pyiceberg,
    "polars": with_polars,
    "duckdb": with_duckdb,
    "pyiceberg-core": with_pyiceberg_core,
    "spark": with_spark,
    "flink": with_flink,
    "chdb": with_chdb,
    "sail": with_sail,
    "iceberg-go": with_iceberg_go,
    "trino": with_trino,
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
    if _KEPT:
        os._exit(0)  # Threads of a server would keep the process.


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
