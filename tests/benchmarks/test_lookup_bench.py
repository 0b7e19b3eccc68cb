"""Rows by their keys in a lake of many small files: one key, and very many at once."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from measuring import Contender, against_target, heading, race, show_all
from opened_files import OpenedFiles

import tableformat as tf

_FILES = 1_000
_SPREAD_FILES = 10_000
_ROWS_EACH = 200
_KEYS = 100_000
_GETS = 40
_ROUNDS = 5


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.string()), ("n", pa.int64()), ("value", pa.float64())])
    table = catalog.create_table("db.t", schema, key=["id", "n"])
    write = table.new_write()
    numbers = np.arange(_ROWS_EACH)
    staged = [
        write.write(pa.table({"id": [f"partner-{file:05}"] * _ROWS_EACH, "n": numbers, "value": numbers / 2}))
        for file in range(_FILES)
    ]
    table.commit(write, staged)
    table.delete_prefix({"id": "partner-00500"})
    return table


def test_get_in_a_thousand_small_files(benchmark: Any, table: tf.Table) -> None:
    files = itertools.cycle(np.random.default_rng(7).permutation(_FILES).tolist())

    def get(_: None) -> None:
        file = next(files)
        row = table.get((f"partner-{file:05}", 7))
        assert (row is None) == (file == 500)

    def plan(_: None) -> None:
        assert len(table.scan(f"id = 'partner-{next(files):05}'").plan().tasks) <= 1

    contenders = {"get": Contender(get), "plan of one partner": Contender(plan)}
    timings = race(benchmark, contenders, rounds=_GETS)
    heading(f"one key among {_FILES:,} files of {_ROWS_EACH} rows, warm")
    show_all(timings)
    against_target("get, p50", timings["get"].wall * 1000, 5, "ms")
    against_target("get, p50 of the process's time", timings["get"].cpu * 1000, 5, "ms")


def _spread(tmp_path: Path, **properties: str) -> tf.Table:
    """A table whose files all have nearly every key within their bounds."""
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.string()), ("n", pa.int64()), ("value", pa.float64())])
    table = catalog.create_table("db.t", schema, key=["id", "n"], properties=properties)
    write = table.new_write()
    numbers = np.random.default_rng(3).permutation(_SPREAD_FILES * _ROWS_EACH).reshape(_SPREAD_FILES, _ROWS_EACH)
    staged = [
        write.write(
            pa.table({"id": [f"message-{number:09}" for number in of_file], "n": of_file % 7, "value": of_file / 2})
        )
        for of_file in np.sort(numbers)
    ]
    table.commit(write, staged)
    return table


@pytest.mark.parametrize("rate", ["0.01", "0.0005"])
def test_get_with_bloom_filters_if_bounds_exclude_no_file(
    benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rate: str
) -> None:
    """FM-27."""
    name = "write.parquet.bloom-filter-{}.column.id"
    table = _spread(tmp_path, **{name.format("enabled"): "true", name.format("fpp"): rate})
    numbers = itertools.cycle(np.random.default_rng(7).permutation(_SPREAD_FILES * _ROWS_EACH).tolist())
    opened = OpenedFiles()
    opened.watch(monkeypatch)

    def get(_: None) -> None:
        number = next(numbers)
        row = table.get((f"message-{number:09}", number % 7))
        assert row is not None
        assert row["value"] == number / 2

    get(None)
    cold = len(set(opened.of(".parquet")))
    assert cold > _SPREAD_FILES / 2, "no filter is held before the files were opened"
    opened.locations.clear()
    timings = race(benchmark, {"get": Contender(get)}, rounds=_GETS)
    heading(f"one key among {_SPREAD_FILES:,} files whose bounds hold it, filters of rate {rate}; cold {cold:,} opened")
    show_all(timings)
    against_target("files opened, on average", len(opened.of(".parquet")) / _GETS, 1 + _SPREAD_FILES / 100, "")
    against_target("get, p50", timings["get"].wall * 1000, 5, "ms")
    against_target("get, p50 of the process's time", timings["get"].cpu * 1000, 5, "ms")


def test_get_many_compared_with_key_column_scan(benchmark: Any, table: tf.Table) -> None:
    chosen = np.random.default_rng(7).choice(_FILES * _ROWS_EACH, _KEYS, replace=False)
    keys = pa.table({"id": [f"partner-{file:05}" for file in chosen // _ROWS_EACH], "n": chosen % _ROWS_EACH})
    found = int((chosen // _ROWS_EACH != 500).sum())
    few = keys.filter(pa.array(np.isin(chosen // _ROWS_EACH, np.arange(10))))

    def get_many(_: None) -> None:
        assert table.get_many(keys).num_rows == found

    def get_few(_: None) -> None:
        assert table.get_many(few).num_rows == few.num_rows

    def scan(_: None) -> None:
        assert table.scan(columns=["id", "n"]).to_arrow().num_rows == (_FILES - 1) * _ROWS_EACH

    contenders = {
        f"get_many, {_KEYS:,} keys": Contender(get_many),
        f"get_many, {len(few):,} keys in 10 files": Contender(get_few),
        "scan of the key columns": Contender(scan),
    }
    timings = race(benchmark, contenders, rounds=_ROUNDS)
    heading(f"keys of {_FILES:,} files of {_ROWS_EACH} rows, warm")
    show_all(timings)
    for name in list(contenders)[:2]:
        for clock in ("wall", "cpu"):
            ratio = getattr(timings[name], clock) / getattr(timings["scan of the key columns"], clock)
            against_target(f"{name}, against the scan, {clock}", ratio, 1)
