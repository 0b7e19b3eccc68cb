"""Writes an archive of the classes that Spark loads for a few statements. The Java processes of tests map it instead of
reading and verifying the classes, which saves five to six seconds of CPU time at each start.

    python tests/spark/class_archive.py ARCHIVE

`tests/conftest.py` passes the archive to every Java process. Java ignores an archive of another Java or Spark version.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tableformat.demo.java_runtime import INSTALL_HINT, find_java

_STATEMENTS = """
import sys
from pyspark.sql import SparkSession
from spark_ext import configure

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "2")
spark = configure(builder, catalog="lake", warehouse=sys.argv[1]).getOrCreate()
for statement in (
    "CREATE NAMESPACE lake.db",
    "CREATE TABLE lake.db.t (id BIGINT NOT NULL, day DATE, v DOUBLE, s STRING) PARTITIONED BY (bucket(2, id))",
    "INSERT INTO lake.db.t SELECT id, date'2026-01-01', id, 'x' FROM range(10)",
    "DELETE FROM lake.db.t WHERE v > 8",
    "UPDATE lake.db.t SET v = v + 1 WHERE id = 3",
    "MERGE INTO lake.db.t t USING (SELECT 1L id, 2D v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v",
    "SELECT day, sum(v), count(DISTINCT s) FROM lake.db.t GROUP BY day ORDER BY day",
    "SELECT * FROM lake.db.t.snapshots",
):
    spark.sql(statement).collect()
spark.stop()
"""


def main(archive: Path) -> None:
    if find_java() is None:
        print(f"no archive of Spark's classes: {INSTALL_HINT}")
        return
    part = archive.with_suffix(".part")
    options = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable -XX:ArchiveClassesAtExit={part}"
    environment = {**os.environ, "JDK_JAVA_OPTIONS": options, "SPARK_LOCAL_IP": "127.0.0.1"}
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-c", _STATEMENTS, str(Path(directory) / "lake")]
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=300)
    if part.exists():
        part.replace(archive)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
