"""Writing from Spark compared with `DataFrame.write.parquet` of the same rows."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from measuring import Contender, against_target, heading, show_all
from nine_million_rows import benchmark_directory
from spark_measuring import CATALOG, Stopwatch, race_in_spark, ratio_of, spark_session
from wide_rows import KEY, SCHEMA, wide_rows

import tableformat as tf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROUNDS = 3
_WARM_UPS = 1
_UNSORTED_KEY = ("name", "qty")
"""Columns by which the rows are not sorted."""


def test_append_compared_with_parquet_write(tmp_path: Path) -> None:
    """All contenders read the rows from Parquet files each time."""
    base = wide_rows(benchmark_directory(tmp_path))
    warehouse = tmp_path / "warehouse"
    catalog = tf.open_catalog(str(warehouse))
    catalog.create_namespace("writes")
    with spark_session(warehouse) as spark:
        parquet, in_order = tmp_path / "parquet", tmp_path / "in-order"

        def rows() -> DataFrame:
            return spark.read.parquet(*base.paths)

        def new_table(key: Sequence[str]) -> str:
            name = f"writes.by_{'_'.join(key) or 'nothing'}"
            if catalog.table_exists(name):
                catalog.drop_table(name, purge=True)
            catalog.create_table(name, _schema(key), key=key)
            return name

        def append(key: Sequence[str]) -> Contender:
            return Contender(lambda name: rows().writeTo(f"{CATALOG}.{name}").append(), lambda: new_table(key))

        def to_parquet(directory: Path, order: Sequence[str]) -> Contender:
            def run(frame: DataFrame) -> None:
                frame.write.parquet(str(directory))

            def prepare() -> DataFrame:
                shutil.rmtree(directory, ignore_errors=True)
                return rows().sortWithinPartitions(*order) if order else rows()

            return Contender(run, prepare)

        contenders = {
            "write.parquet": to_parquet(parquet, ()),
            "write.parquet of sorted rows": to_parquet(in_order, _UNSORTED_KEY),
            "append, no key": append(()),
            "append, rows come in key order": append(KEY),
            "append, rows come in no order": append(_UNSORTED_KEY),
        }
        timings = race_in_spark(Stopwatch(spark), contenders, rounds=_ROUNDS, warm_ups=_WARM_UPS)

    heading(f"{base.row_count:,} rows appended, against write.parquet")
    show_all(timings)
    plain, ordered, *ours = contenders
    for name in ours:
        cpu, wall = ratio_of(timings[name], timings[plain])
        against_target(f"{name}, CPU time", cpu, 1.0)
        against_target(f"{name}, wall time", wall, 1.0)
    cpu, wall = ratio_of(timings[ours[-1]], timings[ordered])
    against_target(f"{ours[-1]}, against {ordered}, CPU time", cpu, 1.0)
    against_target(f"{ours[-1]}, against {ordered}, wall time", wall, 1.0)


def _schema(key: Sequence[str]) -> pa.Schema:
    """Key columns are required."""
    return pa.schema([field.with_nullable(field.nullable and field.name not in key) for field in SCHEMA])
