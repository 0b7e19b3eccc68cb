"""Replacing a thousand messages costs about as much as writing their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ducklake import ducklake_python, running_ducklake
from measuring import Contender, Timing, against_target, heading, race, show, show_all
from nine_million_rows import NineMillionRows, rows_of_messages, some_messages
from opened_files import OpenedFiles

from tableformat.demo.messages import PREFIX

MESSAGES = 1_000
_ROUNDS = 15


def test_replace_of_1000_messages_compared_with_parquet_write(
    base: NineMillionRows, benchmark: Any, tmp_path: Path
) -> None:
    table = base.copy(tmp_path / "lake")
    seeds = iter(range(10_000))

    def fresh_rows() -> pa.Table:
        return rows_of_messages(some_messages(MESSAGES, next(seeds)), seed=1)

    def write_parquet(codec: str) -> Contender:
        return Contender(
            lambda rows: pq.write_table(rows, tmp_path / f"{next(seeds)}.parquet", compression=codec), fresh_rows
        )

    contenders = {
        "replace, range deletes": Contender(lambda rows: table.replace(rows, prefix=PREFIX), fresh_rows),
        "append of as many rows": Contender(table.append, fresh_rows),
        "pyarrow.parquet.write_table, snappy": write_parquet("snappy"),
        "pyarrow.parquet.write_table, zstd": write_parquet("zstd"),
    }
    timings = race(benchmark, contenders, rounds=_ROUNDS)
    ours = timings["replace, range deletes"]
    plain = timings["pyarrow.parquet.write_table, snappy"]
    ducklake = _ducklake_timing(base, tmp_path)
    if ducklake is not None:
        timings["DuckLake, DELETE and INSERT"] = ducklake

    heading(f"replace of {MESSAGES:,} messages ({len(fresh_rows()):,} rows) in 9,000,000")
    show_all(timings)
    against_target("replace against write_table", ours.wall / plain.wall, 2.0)
    against_target("replace against write_table, CPU time", ours.cpu / plain.cpu, 2.0)
    if ducklake is None:
        show("replace against DuckLake", "skipped: duckdb-extension-ducklake 1.5.5 is not installed")
    else:
        against_target("replace against DuckLake", ours.wall / ducklake.wall, 1.0)


def test_replace_does_not_read_table_data(
    base: NineMillionRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = base.copy(tmp_path)
    rows = rows_of_messages(some_messages(MESSAGES, seed=7), seed=7)
    opened = OpenedFiles()
    opened.watch(monkeypatch)
    result = table.replace(rows, prefix=PREFIX)
    monkeypatch.undo()

    heading("replace of 1,000 messages, bytes")
    show("written (result)", f"{result.written_bytes:,} bytes in {result.added_delete_files_count} delete file")
    assert opened.of(".parquet") == []
    assert table.scan().count() == sum(data.record_count for data in base.data_files)
    some_key = rows.slice(0, 1).to_pylist()[0]
    where = f"id1 = '{some_key['id1']}' AND id2 = {some_key['id2']}"
    assert table.scan(where).to_arrow().sort_by("num_cal").to_pylist() == rows.slice(0, 15).to_pylist()


def _ducklake_timing(base: NineMillionRows, directory: Path) -> Timing | None:
    """The same replacements in DuckLake."""
    python = ducklake_python()
    if python is None:
        return None
    timing = Timing()
    with running_ducklake(python, directory / "ducklake", base.paths) as lake:
        for seed in range(_ROUNDS):
            rows = directory / f"incoming-{seed}.parquet"
            pq.write_table(rows_of_messages(some_messages(MESSAGES, seed), seed=1), rows)
            seconds = lake.call(verb="replace", rows=str(rows))
            timing.wall_seconds.append(seconds["wall"])
            timing.cpu_seconds.append(seconds["cpu"])
        assert lake.call(verb="count") == {"count": sum(data.record_count for data in base.data_files)}
    return timing
