"""Runs SQL in another engine that is connected to the server. It runs in an environment of that engine.

    sql_client.py spark|duckdb|trino|flink URL

Standard input: one JSON text for each statement. Standard output: a line for each, `{"rows": [...]}` or
`{"error": "..."}`. The catalog is named `served`. The process ends when its standard input is closed.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

Run = Callable[[str], list[list[Any]]]


def spark(url: str) -> Run:
    """Spark with Iceberg's runtime alone, the jar at ICEBERG_SPARK_JAR."""
    from pyspark.sql import SparkSession

    settings: dict[str, bool | float | int | str | None] = {
        "spark.jars": os.environ["ICEBERG_SPARK_JAR"],
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.served": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.served.type": "rest",
        "spark.sql.catalog.served.uri": url,
        "spark.sql.catalog.served.cache-enabled": "false",
        "spark.sql.catalog.served.scan-planning-mode": os.environ.get("SCAN_PLANNING_MODE", "client"),
        "spark.sql.shuffle.partitions": "1",
    }
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    return lambda statement: [list(row) for row in session.sql(statement).collect()]


def duckdb(url: str) -> Run:
    """DuckDB with its Iceberg extension, both from PyPI."""
    from duckdb_iceberg_reader import connect

    connection = connect()
    connection.execute(f"ATTACH '' AS served (TYPE ICEBERG, ENDPOINT '{url}', AUTHORIZATION_TYPE 'none')")
    connection.execute("SET unsafe_iceberg_ignore_sort_order = true")
    return lambda statement: [list(row) for row in connection.execute(statement).fetchall()]


def trino(url: str) -> Run:
    """Trino: the server in TRINO_HOME, run by TRINO_JAVA_HOME (Java 24 or newer)."""
    import trino as client

    home = Path(tempfile.mkdtemp(prefix="trino-"))
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    texts = {
        "node.properties": f"node.environment=served\nnode.id=served\nnode.data-dir={home}/data\n"
        "node.internal-address=127.0.0.1\nnode.bind-ip=127.0.0.1\n",
        "config.properties": "coordinator=true\nnode-scheduler.include-coordinator=true\n"
        f"http-server.http.port={port}\ndiscovery.uri=http://127.0.0.1:{port}\n"
        "query.max-memory=1GB\nquery.max-memory-per-node=512MB\n",
        "jvm.config": "-Xmx2G\n-XX:+UseSerialGC\n-Djdk.attach.allowAttachSelf=true\n"
        "--sun-misc-unsafe-memory-access=allow\n--enable-native-access=ALL-UNNAMED\n"
        "--add-modules=jdk.incubator.vector\n",
        "catalog/served.properties": "connector.name=iceberg\niceberg.catalog.type=rest\n"
        f"iceberg.rest-catalog.uri={url}\nfs.hadoop.enabled=true\n",
    }
    for name, text in texts.items():
        (home / "etc" / name).parent.mkdir(parents=True, exist_ok=True)
        (home / "etc" / name).write_text(text)
    java = os.environ["TRINO_JAVA_HOME"]
    # The shell stops the server when this process ends.
    script = 'exec 3<&0; "$0" run --etc-dir "$1/etc" >"$1/log" 2>&1 & server=$!; (read -r _ <&3; kill $server) & wait'
    launcher = str(Path(os.environ["TRINO_HOME"]) / "bin" / "launcher")
    environment = {**os.environ, "JAVA_HOME": java, "PATH": f"{java}/bin{os.pathsep}{os.environ['PATH']}"}
    server = subprocess.Popen(["sh", "-c", script, launcher, str(home)], stdin=subprocess.PIPE, env=environment)
    connection = client.dbapi.connect(
        host="127.0.0.1", port=port, user="served", catalog="served", schema="db", timezone="UTC"
    )

    def run(statement: str) -> list[list[Any]]:
        cursor = connection.cursor()
        cursor.execute(statement)
        return [list(row) for row in cursor.fetchall()]

    deadline = time.monotonic() + 300
    while True:
        try:
            run("SELECT 1")
        except Exception:
            if server.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(2)
        else:
            return run


def flink(url: str) -> Run:
    """Flink in batch mode, with Iceberg's runtime on HADOOP_CLASSPATH. CATALOG_OPTIONS has further options as JSON."""
    from pyflink.table import EnvironmentSettings, TableEnvironment

    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.get_config().set("parallelism.default", "1")
    options = {"type": "iceberg", "catalog-type": "rest", "uri": url, "cache-enabled": "false"}
    options |= json.loads(os.environ.get("CATALOG_OPTIONS", "{}"))
    stated = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    environment.execute_sql(f"CREATE CATALOG served WITH ({stated})")

    def run(statement: str) -> list[list[Any]]:
        result = environment.execute_sql(statement)
        if statement.startswith("INSERT"):
            result.wait()
            return []
        with result.collect() as found:
            return [list(row) for row in found]

    return run


CLIENTS = {"spark": spark, "duckdb": duckdb, "trino": trino, "flink": flink}


def main() -> None:
    run = CLIENTS[sys.argv[1]](sys.argv[2])
    sys.stdout.write('{"ready": true}\n')
    sys.stdout.flush()
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"rows": run(json.loads(line))}
        except Exception as error:  # noqa: BLE001 the error is the answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer, default=str) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
