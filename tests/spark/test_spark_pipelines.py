"""A declarative Spark pipeline with AUTO CDC into tables of the catalog, in a process with a Connect server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tableformat import open_catalog

ROOT = Path(__file__).parents[2]
SPEC = """
name: orders
catalog: lake
database: shop
storage: {directory}/storage
libraries:
  - glob:
      include: flows/**
"""
FLOWS = """
CREATE STREAMING TABLE orders;
CREATE FLOW newest AS AUTO CDC INTO orders FROM STREAM(lake.shop.events) KEYS (customer, number)
APPLY AS DELETE WHEN op = 'D' SEQUENCE BY at COLUMNS * EXCEPT (op, at) STORED AS SCD TYPE 1;
CREATE STREAMING TABLE history;
CREATE FLOW all_states AS AUTO CDC INTO history FROM STREAM(lake.shop.events) KEYS (customer, number)
APPLY AS DELETE WHEN op = 'D' SEQUENCE BY at COLUMNS * EXCEPT (op, at) STORED AS SCD TYPE 2;
"""
SCRIPT = """
import sys
from pathlib import Path
from pyspark.pipelines.cli import run
from pyspark.sql import SparkSession
from spark_ext import configure

directory = Path(sys.argv[1])
builder = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2")
builder = builder.config("spark.ui.enabled", "false").config("spark.sql.warehouse.dir", str(directory / "session"))
spark = configure(builder, catalog="lake", warehouse=directory / "lake").getOrCreate()
spark.sql("CREATE NAMESPACE lake.shop")
spark.sql("CREATE TABLE lake.shop.events (customer STRING, number BIGINT, city STRING, op STRING, at BIGINT)")
spark.sql(
    "INSERT INTO lake.shop.events VALUES ('ann', 1, 'Oslo', 'I', 1), ('ann', 1, 'Bonn', 'U', 3), "
    "('ann', 1, 'Rome', 'U', 2), ('bob', 1, 'Rome', 'I', 2), ('bob', 1, NULL, 'D', 4), ('cem', 1, 'Riga', 'I', 5)"
)
run(directory / "spark-pipeline.yml", [], False, [], False)
"""


@pytest.mark.long
@pytest.mark.since_spark("4.3", "AUTO CDC")
def test_auto_cdc_keeps_the_newest_state_and_the_history(java: None, tmp_path: Path) -> None:
    """ST-9: micro-batches are merged from frames that join the target and a table of its state."""
    (tmp_path / "spark-pipeline.yml").write_text(SPEC.format(directory=tmp_path.as_uri()))
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "orders.sql").write_text(FLOWS)
    places = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    with open_catalog(str(tmp_path / "lake")) as catalog:
        newest = catalog.load_table("shop.orders").scan(columns=["customer", "city"]).to_arrow().to_pylist()
        states = catalog.load_table("shop.history").scan().to_arrow().to_pylist()
    assert sorted((row["customer"], row["city"]) for row in newest) == [("ann", "Bonn"), ("cem", "Riga")]
    history = sorted((row["customer"], row["__START_AT"], row["__END_AT"] or 0, row["city"]) for row in states)
    assert history == [
        ("ann", 1, 2, "Oslo"),
        ("ann", 2, 3, "Rome"),
        ("ann", 3, 0, "Bonn"),
        ("bob", 2, 4, "Rome"),
        ("cem", 5, 0, "Riga"),
    ]
