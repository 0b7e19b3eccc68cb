"""Planning a table of many snapshots, and one of many files. No file of rows is needed: planning opens none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from measuring import Contender, Timing, against_target, bytes_under, heading, race, show, show_all
from nine_million_rows import KEY_FIELD_IDS, adopt, loaded, new_table
from pyiceberg.types import IntegerType, LongType, StringType

import tableformat as tf
from tableformat.metadata.column_bounds import to_bound
from tableformat.metadata.columns import read_columns
from tableformat.metadata.content_file import PARQUET, DataFile
from tableformat.metadata.manifests import manifest_list, manifest_reader
from tableformat.storage.bounded_cache import BoundedCache

_SNAPSHOTS = 2_000
_FILES = 10_000
_ROUNDS = 9
_COMMITS_AT_EACH_END = 100


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
        """As in a process that has read nothing."""
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
    """Which range deletes meet which files is decided for all files together."""
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
