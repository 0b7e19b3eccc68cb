"""Up to nine million rows: each operation once in each round, and the time of a read after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from nine_million_rows import HEAVY_PARTNERS, benchmark_directory, nine_million_rows, rows_of_messages, some_messages

from report.expected import ExpectedRows
from report.workloads.contest import LIMIT, Contest, Setting, contest, in_file

WORKLOAD = "verbs"
_ROUNDS = 3
_SECONDS_OF_ALL_ROWS = 540
_FEWER_ROWS = 1_400_000
"""With less time these are enough: the heavy partners and some others."""
_READS = 2
_REPLACED = 1_000
_UPSERTED = 100_000
_LOOKUPS = 20
_AMOUNT = "num_cal"


def run(setting: Setting) -> None:
    """Run as many rounds as the time allows, at least one."""
    base = nine_million_rows(benchmark_directory(setting.directory))
    rows = pa.concat_tables([pq.read_table(path) for path in base.paths])
    if setting.deadline.seconds < _SECONDS_OF_ALL_ROWS:
        rows = rows.slice(0, _FEWER_ROWS)
    setting.measurements.sizes[WORKLOAD] = f"{rows.num_rows:,} rows of seven columns"
    loaded = in_file(rows, setting.directory / "base.parquet")
    took = 0.0
    for number in range(_ROUNDS):
        if number and setting.deadline.left < took:
            return
        before = setting.deadline.left
        with contest(WORKLOAD, setting, setting.systems, setting.directory / str(number)) as entered:
            _round(entered, loaded, rows, setting.directory, number)
        took = before - setting.deadline.left


def _round(entered: Contest, loaded: str, rows: pa.Table, directory: Path, number: int) -> None:
    answers = ExpectedRows(rows)
    tables = [name for name in entered.systems if name != LIMIT]
    entered.each("append of all rows", "load", rows=loaded, amount=_AMOUNT)
    _read(entered, answers, "clean")
    for partner, count in HEAVY_PARTNERS.items():
        answers.delete_prefix({"id1": partner})
        entered.each(f"delete by prefix, {count:,} rows", "delete_prefix", only=tables, values={"id1": partner})
    _read(entered, answers, "after three prefix deletes")
    replaced = rows_of_messages(some_messages(_REPLACED, seed=number), seed=number)
    answers.replace(replaced)
    path = in_file(replaced, directory / "replaced.parquet")
    entered.each(f"replacement of {_REPLACED:,} messages", "replace", only=tables, rows=path)
    entered.each("replacement: the bare rows, written", "write", only=[LIMIT], rows=path)
    _read(entered, answers, "after the replacement")
    _look_up(entered, answers, replaced, tables)
    upserted = _upserted(number)
    answers.upsert(upserted)
    path = in_file(upserted, directory / "upserted.parquet")
    entered.each(f"upsert of {_UPSERTED:,} rows", "upsert", only=tables, rows=path, seconds=90)
    entered.each(f"upsert of {_UPSERTED:,} rows", "write", only=[LIMIT], rows=path)
    _read(entered, answers, "after the upsert")
    paths = entered.paths()
    entered.each("conversion of the deletes", "convert", only=tables)
    entered.each("conversion of the deletes", "scan_keys", only=[LIMIT], paths=paths)
    entered.each("compaction", "compact", only=tables, seconds=300)
    entered.each("compaction", "rewrite", only=[LIMIT], paths=paths)
    _read(entered, answers, "after compaction")
    answers.close()


def _read(entered: Contest, answers: ExpectedRows, when: str) -> None:
    """The first scan is a handle's first."""
    paths = entered.paths()
    all_rows, total = answers.digest(), answers.total(_AMOUNT)
    others = [name for name in entered.systems if name != LIMIT]

    def files_of(name: str) -> dict[str, Any]:
        return {"paths": paths} if name == LIMIT else {}

    entered.each(f"first scan {when}", "scan", expected=all_rows, arguments_of=files_of)
    for _ in range(_READS):
        entered.each(f"scan again {when}", "scan_again", expected=all_rows, only=others)
        entered.each(f"scan again {when}", "scan", only=[LIMIT], paths=paths)
        entered.each(f"count and sum {when}", "total", expected=total, arguments_of=files_of)


def _look_up(entered: Contest, answers: ExpectedRows, rows: pa.Table, tables: list[str]) -> None:
    chosen = np.random.default_rng(3).choice(rows.num_rows, _LOOKUPS, replace=False)
    for row in rows.select(["id1", "id2", "num_cal"]).take(pa.array(chosen)).to_pylist():
        key = [row["id1"], row["id2"], row["num_cal"]]
        entered.each("lookup of one key", "get", only=tables, expected=answers.row(key), key=key)


def _upserted(number: int) -> pa.Table:
    """Half of the rows are of messages that are there."""
    count = _UPSERTED // 15 + 1
    known = rows_of_messages(some_messages(count, seed=100 + number), seed=number)
    renamed = pa.compute.binary_join_element_wise("new", known["id1"], "-")
    new = known.set_column(0, known.schema.field("id1"), renamed).slice(0, _UPSERTED // 2)
    return pa.concat_tables([known.slice(0, _UPSERTED - new.num_rows), new])
