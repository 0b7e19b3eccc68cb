"""Appending many sorted rows, compared with writing only the Parquet file."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from measuring import Contender, against_target, heading, race, show_all
from nine_million_rows import NineMillionRows, new_table

import tableformat as tf

_ROUNDS = 7
_ROWS = 1_400_000
_GROUP_ROWS = 131_072


def test_append_in_order(benchmark: Any, tmp_path: Path, base: NineMillionRows) -> None:
    rows = base.table.scan(limit=_ROWS).to_arrow()
    places = (tmp_path / str(number) for number in itertools.count())

    def empty(codec: str) -> tf.Table:
        return new_table(next(places), **{"write.parquet.compression-codec": codec})

    def write(path: Path, codec: str) -> None:
        options = {"write_page_checksum": True, "write_page_index": True, "store_schema": False}
        pq.write_table(rows, path, compression=codec, row_group_size=_GROUP_ROWS, **options)

    contenders = {
        "append, zstd": Contender(lambda table: table.append(rows), lambda: empty("zstd")),
        "append, snappy": Contender(lambda table: table.append(rows), lambda: empty("snappy")),
        "write_table, zstd, the same options": Contender(lambda path: write(path, "zstd"), lambda: next(places)),
        "write_table, snappy, the same options": Contender(lambda path: write(path, "snappy"), lambda: next(places)),
    }
    timings = race(benchmark, contenders, rounds=_ROUNDS)
    heading(f"append of {rows.num_rows:,} rows in key order")
    show_all(timings)
    plain = timings["write_table, zstd, the same options"]
    against_target("append against write_table, CPU", timings["append, zstd"].cpu / plain.cpu, 1.2)
