"""The files that upkeep merges (MT-80, MT-81, MT-84), chosen only by their sizes and positions in the key space."""

from __future__ import annotations

from tableformat.deletes.spans.bounds import KeyBounds
from tableformat.maintenance.compaction import levels
from tableformat.maintenance.compaction.compaction_statistics import FileStatistics
from tableformat.maintenance.compaction.levels import LevelOptions, bases_and_above
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DataFile, DeleteFile, FileContent

OPTIONS = LevelOptions(fan_in=4, base_share=0.5, target_file_size_bytes=1 << 30)


def file(first: str, last: str, size: int, *, is_deleted_from: bool = False) -> FileStatistics:
    """A file of keys that begin with letters; with `is_deleted_from` it has a pending delete."""
    same = {"file_format": "PARQUET", "spec_id": 0}
    data = DataFile(file_path=f"{first}-{last}-{size}", record_count=size, file_size_bytes=size, **same)
    delete = DeleteFile(
        content=FileContent.POSITION_DELETES, file_path="delete", record_count=1, file_size_bytes=1, **same
    )
    task = FileScanTask(data_file=data, position_deletes=(delete,) if is_deleted_from else ())
    bounds = KeyBounds(first.encode(), last.encode() + b"\xff")
    return FileStatistics(task, (), bounds, deleted_row_count=0, is_exact=True)


def test_base_is_merged_when_overlapping_files_reach_its_share() -> None:
    """MT-81: half of its bytes here, and no other file is taken along."""
    small = [file("m", "n", 10), file("m", "n", 20), file("a", "b", 25), file("y", "z", 30)]
    base = file("m", "n", 60, is_deleted_from=True)
    assert bases_and_above([*small, base], OPTIONS) == [[0, 1, 4]]
    heavier = file("m", "n", 61, is_deleted_from=True)
    assert bases_and_above([*small, heavier], OPTIONS) == []
    assert bases_and_above([*small, file("m", "n", 60)], OPTIONS) == [], "without deletes there is nothing to gain"


def test_bases_sharing_a_file_are_merged_together() -> None:
    """MT-81"""
    files = [
        file("a", "b", 20),
        file("y", "z", 21),
        file("a", "b", 40, is_deleted_from=True),
        file("y", "z", 41, is_deleted_from=True),
    ]
    options = LevelOptions(fan_in=2, base_share=0.5, target_file_size_bytes=1 << 30)
    assert bases_and_above(files, options) == [[0, 2], [1, 3]]
    across = file("a", "z", 1)
    assert bases_and_above([across, *files], options) == [[0, 1, 2, 3, 4]]


def test_smallest_merges_within_budget_are_chosen_first() -> None:
    """MT-84: if a base does not fit, the levels above it are merged as if it were not due."""
    small = [file("a", "b", 10 + number) for number in range(4)]
    large = [file("m", "n", 100 + number) for number in range(4)]
    base = file("a", "b", 80, is_deleted_from=True)
    due = list(levels._due([*small, *large, base], OPTIONS))
    assert [(each.has_base, each.group.rewritten_bytes) for each in due] == [(True, 126), (False, 406)]

    def fitting(room: int | None) -> tuple[list[int], list[int]]:
        chosen, left_out = levels._fitting(reversed(due), OPTIONS, room)
        return [each.rewritten_bytes for each in chosen], [each.rewritten_bytes for each in left_out]

    assert fitting(None) == ([126, 406], [])
    assert fitting(532) == ([126, 406], [])
    assert fitting(531) == ([126], [406])
    assert fitting(125) == ([46], [126, 406])
    assert fitting(45) == ([], [126, 46, 406])
