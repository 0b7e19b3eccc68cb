"""Expiry of a file that the table references by two spellings of its location, as other libraries add it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from maintenance_tables import keyed_table, rows


@pytest.mark.parametrize("again", ["file:{real}", "{real}", "{link}"])
@pytest.mark.parametrize("version", ["2", "3"])
def test_expiry_keeps_file_readded_under_another_spelling(
    tmp_path: Path, version: str, again: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MT-3: a retained snapshot needs it, however its location is spelt there. Other libraries add such files under
    their names."""
    monkeypatch.setattr("tableformat.operations.verbs.add_files.with_own_names", lambda _, files: tuple(files))
    table = keyed_table(tmp_path / "real", properties={"format-version": version})
    (tmp_path / "link").symlink_to(tmp_path / "real")
    added = Path(table.location.removeprefix("file://")) / "data" / "added.parquet"
    added.parent.mkdir(exist_ok=True)
    pq.write_table(rows("b", range(4)), added)
    table.add_files([f"file://{added}"])
    table.delete("id1 = 'b'", mode="scan")
    link = str(added).replace(str(tmp_path / "real"), str(tmp_path / "link"))
    table.add_files([again.format(real=added, link=link)])
    result = table.maintenance.expire_snapshots(older_than=timedelta(0))
    assert result.expired_snapshots_count == 2
    assert table.scan().to_arrow().num_rows == 4
    assert table.verify(deep=True).is_clean
