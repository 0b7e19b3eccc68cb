"""The option `order-by` of a Spark write against `replace-prefix` alone (decision 55)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from measuring import Contender, against_target, heading, show_all
from spark_measuring import CATALOG, Stopwatch, race_in_spark, ratio_of, spark_session

import tableformat as tf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_PER_MESSAGE = 15
COLUMNS = pa.schema(
    [
        pa.field("customer", pa.int64(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        ("ts", pa.int64()),
    ]
)


@pytest.mark.parametrize(("message_count", "rounds"), [(100, 21), (66_667, 11)])
def test_replace_prefix_with_and_without_order_by(tmp_path: Path, message_count: int, rounds: int) -> None:
    """Two tasks; each has whole messages, as the partitions of a topic do."""
    warehouse = tmp_path / "warehouse"
    catalog = tf.open_catalog(str(warehouse))
    catalog.create_namespace("db")
    for name in ("plain", "ordered"):
        catalog.create_table(f"db.{name}", COLUMNS, key=["customer", "line"])
    with spark_session(warehouse) as spark:

        def rows() -> DataFrame:
            numbers = spark.range(0, message_count * ROWS_PER_MESSAGE, 1, 2)
            return numbers.selectExpr(
                f"id div {ROWS_PER_MESSAGE} AS customer", f"id % {ROWS_PER_MESSAGE} AS line", "7L AS ts"
            )

        def replacing(name: str, **options: str) -> Contender:
            options = {"replace-prefix": "customer", **options}
            return Contender(lambda frame: frame.writeTo(f"{CATALOG}.db.{name}").options(**options).append(), rows)

        contenders = {
            "replace-prefix": replacing("plain"),
            "replace-prefix, order-by": replacing("ordered", **{"order-by": "ts"}),
        }
        timings = race_in_spark(Stopwatch(spark), contenders, rounds=rounds, warm_ups=3)

    heading(f"{message_count:,} messages of {ROWS_PER_MESSAGE} rows from Spark")
    show_all(timings)
    plain, ordered = timings.values()
    cpu, wall = ratio_of(ordered, plain)
    against_target("order-by against none", wall, 1.1)
    against_target("order-by against none, CPU time", cpu, 1.1)
