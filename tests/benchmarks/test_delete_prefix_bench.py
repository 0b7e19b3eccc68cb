"""The time and size of a prefix delete do not depend on how many rows it covers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ducklake import ducklake_python, running_ducklake
from measuring import (
    Contender,
    against_target,
    bytes_read_by_process,
    bytes_under,
    heading,
    new_bytes,
    race,
    show,
    show_all,
)
from nine_million_rows import HEAVY_PARTNERS, NineMillionRows
from opened_files import OpenedFiles

import tableformat as tf

_DELETE_FILE_BYTES_MAX = 4 * 1024
_COMMIT_BYTES_MAX = 25 * 1024
_ROUNDS = 9


@pytest.mark.parametrize("mode", ["range", "scan"])
def test_delete_prefix_of_ten_thousand_to_a_million_rows(
    base: NineMillionRows, benchmark: Any, tmp_path: Path, mode: str
) -> None:
    """KUDU-3748's comparison: one delete of an interval of keys against finding the rows and deleting each."""
    copies = iter(range(1_000))

    def fresh_table() -> tf.Table:
        return base.copy(tmp_path / str(next(copies)))

    def delete(partner: str) -> Callable[[tf.Table], object]:
        return lambda table: table.delete_prefix({"id1": partner}, mode=mode)

    rounds = _ROUNDS if mode == "range" else 3
    timings = race(benchmark, {name: Contender(delete(name), fresh_table) for name in HEAVY_PARTNERS}, rounds=rounds)

    heading(f"delete_prefix(mode={mode!r}) of 10,000, 100,000 and 1,000,000 rows")
    show_all(timings)
    ratio = timings["heavy-1m"].wall / timings["heavy-10k"].wall
    if mode == "range":
        against_target("1,000,000 rows against 10,000", ratio, 1.2)
    else:
        show("1,000,000 rows against 10,000", f"{ratio:9.3f} x")


@pytest.mark.parametrize("partner", HEAVY_PARTNERS)
@pytest.mark.parametrize("mode", ["range", "scan"])
def test_prefix_delete_file_size(
    base: NineMillionRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partner: str, mode: str
) -> None:
    """A range delete opens no data file, regardless of the rows that it covers; its delete file and its commit are
    small."""
    table = base.copy(tmp_path)
    rows_before = table.scan().count()
    before = bytes_under(tmp_path)
    opened = OpenedFiles()
    opened.watch(monkeypatch)
    read_before = bytes_read_by_process()
    result = table.delete_prefix({"id1": partner}, mode=mode)
    read_after = bytes_read_by_process()
    monkeypatch.undo()

    written = new_bytes(before, bytes_under(tmp_path))
    delete_file_bytes = sum(size for path, size in written.items() if path.suffix == ".parquet")
    commit_bytes = sum(written.values())
    data_paths = set(base.paths)
    heading(f"delete_prefix(mode={mode!r}) of {partner}")
    for path, size in sorted(written.items(), key=lambda item: item[0].suffix):
        show(path.name[-40:], f"{size:>9,} bytes")
    show("written in all", f"{commit_bytes:>9,} bytes; the result says {result.written_bytes:,}")
    if read_before is not None and read_after is not None:
        show("read by the process", f"{read_after - read_before:>9,} bytes")
    show("data files opened", len(data_paths.intersection(opened.locations)))

    assert rows_before - table.scan().count() == HEAVY_PARTNERS[partner]
    if mode == "range":
        assert not data_paths.intersection(opened.locations)
        assert delete_file_bytes <= _DELETE_FILE_BYTES_MAX
        assert commit_bytes <= _COMMIT_BYTES_MAX


def test_delete_prefix_compared_with_ducklake(base: NineMillionRows, tmp_path: Path) -> None:
    """For orientation: DuckLake finds the rows and writes their positions. Each delete runs once."""
    python = ducklake_python()
    if python is None:
        pytest.skip("duckdb-extension-ducklake 1.5.5 is not installed")
    heading("DELETE of the same rows in DuckLake")
    with running_ducklake(python, tmp_path / "ducklake", base.paths) as lake:
        for partner, row_count in HEAVY_PARTNERS.items():
            before = bytes_under(tmp_path / "ducklake" / "data")
            rows_before = lake.call(verb="count")["count"]
            seconds = lake.call(verb="delete_partner", partner=partner)
            written = sum(new_bytes(before, bytes_under(tmp_path / "ducklake" / "data")).values())
            show(partner, f"{seconds['wall'] * 1000:9.1f} ms, {written:,} bytes of delete files")
            assert rows_before - lake.call(verb="count")["count"] == row_count
