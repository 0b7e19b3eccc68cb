"""Planning a table of many snapshots, and one of many files. The data files need not exist, because planning opens
none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from many_files import partner, table_of_many_files
from measuring import Contender, Timing, against_target, bytes_under, heading, race, show, show_all
from nine_million_rows import KEY_FIELD_IDS, adopt, loaded, new_table
from pyiceberg.types import IntegerType, LongType, StringType

import tableformat as tf
from tableformat.metadata.column_bounds import to_bound
from tableformat.metadata.columns import read_columns
from tableformat.metadata.content_file import PARQUET, DataFile
from tableformat.metadata.manifests import manifest_list, manifest_reader
from tableformat.storage.bounded_cache import BoundedCache
from tableformat.storage.cache_directory import DIRECTORY_VARIABLE

_SNAPSHOTS = 2_000
_FILES = 10_000
_ROUNDS = 9
_COMMITS_AT_EACH_END = 100
_VERY_MANY = 100_000


def small_files(count: int) -> Iterator[DataFile]:
    """Entries of files that hold the messages of one partner each, with the bounds that such a file would have."""
    for number in range(count):
        name = f"partner-{number:05}"
        lower, upper = ((name, 0, 1), (name, 39, 15))
        yield DataFile(
            file_path=f"memory:/not-read/{name}.parquet",
            file_format=PARQUET,
            spec_id=0,
            record_count=600,
            file_size_bytes=9_000,
            value_counts=dict.fromkeys(range(1, 8), 600),
            null_value_counts={**dict.fromkeys(KEY_FIELD_IDS, 0), **dict.fromkeys(range(4, 8), 300)},
            lower_bounds=_bounds(lower),
            upper_bounds=_bounds(upper),
        )


def _bounds(key: tuple[str, int, int]) -> dict[int, bytes]:
    types = (StringType(), LongType(), IntegerType())
    return {
        field_id: to_bound(value, data_type)
        for field_id, value, data_type in zip(KEY_FIELD_IDS, key, types, strict=True)
    }


def test_planning_of_two_thousand_snapshots(benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(tmp_path)
    commits = [adopt(table, [data]).duration_seconds for data in small_files(_SNAPSHOTS)]

    def forget() -> tf.Table:
        """The table as in a process that has read nothing."""
        monkeypatch.setattr(manifest_reader, "_cache", BoundedCache(manifest_reader.CACHE_BYTES))
        monkeypatch.setattr(manifest_list, "_cache", BoundedCache(manifest_list.CACHED_MANIFESTS))
        monkeypatch.setattr(read_columns, "_raw", BoundedCache(read_columns.RAW_BYTES))
        monkeypatch.setattr(read_columns, "_chunks", BoundedCache(read_columns.CHUNK_BYTES))
        return loaded(tmp_path)

    def plan(table: tf.Table) -> None:
        assert len(table.scan().plan().tasks) == _SNAPSHOTS

    def planned() -> tf.Table:
        fresh = forget()
        plan(fresh)
        return fresh

    contenders = {
        "second plan": Contender(plan, planned),
        "second plan, another handle": Contender(lambda _: plan(loaded(tmp_path)), planned),
        "first plan": Contender(plan, forget),
        "load of the table": Contender(lambda _: loaded(tmp_path)),
    }
    timings = race(benchmark, contenders, rounds=_ROUNDS)
    heading(f"planning of {_SNAPSHOTS:,} snapshots of one small file each")
    show_all(timings)
    against_target("second plan", timings["second plan"].wall, 0.1, "s")
    show(f"commit, the first {_COMMITS_AT_EACH_END}", Timing(commits[:_COMMITS_AT_EACH_END]))
    show(f"commit, the last {_COMMITS_AT_EACH_END}", Timing(commits[-_COMMITS_AT_EACH_END:]))
    sizes = bytes_under(tmp_path)
    newest = max((path for path in sizes if path.name.endswith(".metadata.json")), key=lambda path: path.name)
    show("newest metadata.json", f"{sizes[newest]:,} bytes, {len(table.metadata.snapshots):,} snapshots")
    show("manifests", len(manifest_list.manifests_of(table.view)))


def test_planning_of_ten_thousand_files_with_an_equality_filter(benchmark: Any, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    adopt(table, list(small_files(_FILES)))

    def plan(where: str | None, file_count: int) -> Contender:
        def run(_: None) -> None:
            assert len(table.scan(where).plan().tasks) == file_count

        return Contender(run)

    contenders = {
        "one partner": plan("id1 = 'partner-05000'", 1),
        "one partner, several columns": plan("id1 = 'partner-05000' AND id2 = 3 AND num_cal < 5", 1),
        "no filter": plan(None, _FILES),
    }
    timings = race(benchmark, contenders, rounds=_ROUNDS)
    heading(f"planning of {_FILES:,} files, manifests read before")
    show_all(timings)
    against_target("one partner", timings["one partner"].wall, 0.1, "s")


def test_planning_of_ten_thousand_files_with_a_thousand_prefix_deletes(benchmark: Any, tmp_path: Path) -> None:
    """The range deletes of each file are determined for all files together."""
    table = new_table(tmp_path)
    adopt(table, list(small_files(_FILES)))
    with table.transaction() as transaction:
        for number in range(0, _FILES, 10):
            transaction.delete_prefix({"id1": f"partner-{number:05}", "id2": 3})

    def plan(fresh: tf.Table) -> None:
        assert sum(task.has_deletes for task in fresh.scan().plan().tasks) == _FILES // 10

    contenders = {
        "first plan in a handle": Contender(plan, lambda: loaded(tmp_path)),
        "second plan": Contender(lambda _: plan(table)),
    }
    plan(table)
    timings = race(benchmark, contenders, rounds=_ROUNDS)
    heading(f"planning of {_FILES:,} files with 1,000 prefix deletes in a file each")
    show_all(timings)


@pytest.mark.parametrize("file_count", [100_000, 1_000_000])
def test_planning_of_many_files_in_a_new_process(benchmark: Any, tmp_path: Path, file_count: int) -> None:
    """Manifests clustered by key; nothing of an earlier plan is in memory, but what the cache directory holds."""
    lake = tmp_path / "lake"
    table_of_many_files(lake, file_count)
    one = f"id1 = '{partner(file_count // 2)}'"
    directory = {DIRECTORY_VARIABLE: str(tmp_path / "cache")}

    def plan(where: str, file_count: int, *others: str, **variables: str) -> dict[str, Any]:
        figures: dict[str, Any] = run_alone("plan_once.py", str(lake), where, *others, **variables)
        assert figures["files"] == file_count
        return figures

    heading(f"plans of {file_count:,} files, manifests clustered by key: seconds, CPU seconds")
    contenders: dict[str, tuple[str, int, dict[str, str]]] = {
        "one partner": (one, 1, {}),
        "one partner, cache directory": (one, 1, directory),
    }
    if file_count <= 100_000:
        contenders["no filter"] = ("", file_count, {})
        contenders["no filter, cache directory"] = ("", file_count, directory)
    for name, (where, count, variables) in contenders.items():
        figures = [plan(where, count, **variables) for _ in range(3)]
        for when in ("first", "again"):
            show(f"{name}, {when}", min(tuple(each[when]) for each in figures))
        show(f"{name}, most memory", f"{max(each['peak_bytes'] for each in figures):,}")
    if file_count <= 100_000:
        for name, where, count in (("one partner", one, 1), ("no filter", "", file_count)):
            show(f"PyIceberg, {name}", tuple(plan(where, count, "pyiceberg")["first"]))
    benchmark.pedantic(lambda: plan(one, 1), rounds=1)


@pytest.mark.parametrize("key_count", [1, 100])
def test_planning_of_many_files_with_few_equality_deletes(benchmark: Any, tmp_path: Path, key_count: int) -> None:
    """Ten delete files of one key, each in one data file, or of 100 keys, which may be in any data file by their
    bounds."""
    table = table_of_many_files(tmp_path, _VERY_MANY)

    def plan(_: None) -> None:
        assert len(table.scan().plan().tasks) == _VERY_MANY

    def delete() -> None:
        for number in range(10):
            ids = [partner(number * 9_000 + step * 90_000 // max(key_count, 2)) for step in range(key_count)]
            zeros, ones = pa.array([0] * key_count, pa.int64()), pa.array([1] * key_count, pa.int32())
            table.delete_rows(pa.table({"id1": ids, "id2": zeros, "num_cal": ones}))

    clean = Timing()
    for _ in range(_ROUNDS):
        started = time.process_time()
        plan(None)
        clean.cpu_seconds.append(time.process_time() - started)
    delete()
    timings = race(benchmark, {"with deletes": Contender(plan)}, rounds=_ROUNDS)
    heading(f"plans of {_VERY_MANY:,} files, 10 equality delete files of {key_count} keys, again in the process")
    show("clean, CPU ms", f"{clean.cpu * 1000:.0f}")
    show_all(timings)


def run_alone(script: str, *arguments: str, **variables: str) -> Any:
    """The JSON output of a script in this folder."""
    command = [sys.executable, str(Path(__file__).with_name(script)), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, env={**os.environ, **variables})
    return json.loads(done.stdout)
