"""Conversion slice by slice: the deletes that each commit may remove, and the deletes that remain if only some files
are chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from maintenance_tables import another_handle, keyed_table, rows
from test_convert_deletes import (
    EACH_FILE,
    VERSIONS,
    Meanwhile,
    StoppedError,
    keyed_deletes,
    stopped_after,
    table_of,
    unnamed,
)

from tableformat.commit.change import is_keyed
from tableformat.commit.transaction import commit_change
from tableformat.errors import CommitStateUnknownError
from tableformat.maintenance.conversion import conversion_steps
from tableformat.maintenance.conversion import convert_deletes as module
from tableformat.merge_on_read.delete_index import named_data_file
from tableformat.metadata.content_file import DeleteKind
from tableformat.properties import RANGE_SPAN_BUDGET
from tableformat.testing.table_files import live_data_files, live_delete_files
from tableformat.testing.table_rows import live_tuples


def test_large_range_deletes_are_searched_in_the_files(tmp_path: Path) -> None:
    """CP-11, RD-12: their bounds determine the files that they may apply to, and their rows do not come back."""
    table = keyed_table(tmp_path, properties={RANGE_SPAN_BUDGET: "1"})
    for start in (0, 10):
        table.append(rows("a", range(start, start + 10)))
        table.delete_range(lower=("a", start + 2), upper=("a", start + 5))
    result = table.maintenance.convert_deletes()
    assert (result.removed_range_delete_files_count, result.resolved_data_files_count) == (2, 2)
    assert live_tuples(table) == [("a", number, "x") for number in range(20) if number % 10 not in (2, 3, 4)]
    assert keyed_deletes(table) == []


def test_first_slice_keeps_deletes_needed_by_the_second(tmp_path: Path) -> None:
    """MT-15: a table that the job leaves after its first commit shows the same rows."""
    table = table_of(tmp_path)
    before = live_tuples(table)
    stopped_after(table, 1, max_commits=2)
    table = another_handle(table)
    assert live_tuples(table) == before
    result = table.maintenance.convert_deletes()
    assert result.resumed_data_files_count > 0, "the first of two leaves a record (MT-14)"
    assert live_tuples(table) == before
    assert keyed_deletes(table) == []


def test_conversion_of_selected_files_writes_no_record(tmp_path: Path) -> None:
    """MT-16: files between the files of `only_paths` were not converted, so the next run checks all files."""
    table = table_of(tmp_path)
    before = live_tuples(table)
    every_second = sorted(file.file_path for file in live_data_files(table) if file.record_count == 10)[1::2]
    stopped_after(table, 2, only_paths=every_second)
    table = another_handle(table)
    assert live_tuples(table) == before
    named = {named_data_file(each) for each in live_delete_files(table) if not is_keyed(each)}
    assert len(named) == 2
    assert named < set(every_second)
    result = table.maintenance.convert_deletes()
    assert (result.resumed_data_files_count, result.resolved_data_files_count) == (0, 7), "the upserted file too"
    assert live_tuples(table) == before
    assert keyed_deletes(table) == []


def test_conversion_of_some_delete_kinds_writes_no_record(tmp_path: Path) -> None:
    """MT-89: the ranges of the same files were not looked for, and are by the next run of all kinds."""
    table = table_of(tmp_path)
    before = live_tuples(table)

    def stop(done: int, total: int, what: str) -> None:
        if another_handle(table).snapshot_id != head:
            raise StoppedError

    head = table.snapshot_id
    with pytest.raises(StoppedError):
        module.convert_deletes(table.iceberg, "main", kinds={DeleteKind.EQUALITY}, progress=stop)
    table = another_handle(table)
    assert live_tuples(table) == before
    assert table.maintenance.convert_deletes().resumed_data_files_count == 0
    assert live_tuples(table) == before
    assert keyed_deletes(table) == []


@VERSIONS
def test_unknown_outcome_removes_files_of_uncommitted_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """CP-13, MT-17: a conflict leaves what is converted waiting, and only the next commit has no answer."""
    table = table_of(tmp_path, version)
    other = another_handle(table)
    table.set_properties(**{"write.target-file-size-bytes": "100000000"})

    def disturb() -> None:
        other.set_properties(**EACH_FILE)
        other.delete("id2 = 2", mode="scan")

    answers: list[Any] = []

    def lose_the_second_answer(*arguments: Any, **options: Any) -> Any:
        answers.append(commit_change(*arguments, **options))
        raise CommitStateUnknownError("no answer")

    monkeypatch.setattr(conversion_steps, "_AT_ONCE", 1 if version == "2" else conversion_steps._AT_ONCE)
    monkeypatch.setattr(module, "commit_change", lose_the_second_answer)
    with pytest.raises(CommitStateUnknownError):
        table.maintenance.convert_deletes(progress=Meanwhile(disturb))
    assert len(answers) == 1
    assert unnamed(another_handle(table)) == set()
    assert 2 not in [row[1] for row in live_tuples(another_handle(table))]
