"""Data files that most of many equality deletes apply to share one list of deletes, and its keys are built once."""

from __future__ import annotations

import pickle

from test_delete_index import SPECS, TYPES, bounds, data, equality, paths

from tableformat.merge_on_read.delete_index import SHARED_FROM, ColumnTypes, KeyDeleteIndex
from tableformat.merge_on_read.newer_deletes import NewerDeletes, SharedDeletes
from tableformat.metadata.content_file import DataFile, DeleteFile

GLOBAL = {"spec_id": 1, "partition": ()}
COMMITS = SHARED_FROM + 4


def deletes_between(lower: int, upper: int, count: int = COMMITS, first_number: int = 6) -> list[DeleteFile]:
    return [
        equality(f"{lower}-{number}", number, **GLOBAL, **bounds(1, lower, upper))
        for number in range(first_number, first_number + count)
    ]


def shared_of(deletes: list[DeleteFile], file: DataFile) -> object:
    return KeyDeleteIndex(deletes, SPECS, ColumnTypes(TYPES)).shared_deletes_of(file)


def test_file_matched_by_most_deletes_gets_all_newer_deletes() -> None:
    """DA-2: deletes that its bounds rule out are included, older deletes are not."""
    meeting, others = deletes_between(0, 9), deletes_between(20, 29, count=5)
    older = deletes_between(0, 9, count=3, first_number=1)
    found = shared_of([*others, *meeting, *older], data(number=5, **bounds(1, 3, 4)))
    assert isinstance(found, NewerDeletes)
    assert paths(found) == paths([*meeting, *others])
    assert len(found) == len(found.shared.deletes) - 3
    assert found.record_count == len(found)


def test_file_matched_by_few_deletes_gets_only_those() -> None:
    meeting, others = deletes_between(0, 9), deletes_between(20, 29)
    file = data(number=5, **bounds(1, 23, 24))
    assert shared_of([*meeting, *others[:4]], file) == tuple(others[:4])
    assert shared_of([*meeting, *others], data(number=5, **bounds(1, 12, 13))) == ()
    assert shared_of(meeting[: SHARED_FROM - 1], data(number=5)) == tuple(meeting[: SHARED_FROM - 1])


def test_identity_of_newer_deletes_ignores_older_ones() -> None:
    older, newer = deletes_between(0, 9, first_number=1), deletes_between(0, 9, first_number=100)
    alone = NewerDeletes(SharedDeletes(newer), 0)
    among = NewerDeletes(SharedDeletes([*newer, *older]), len(older))
    assert alone == among == pickle.loads(pickle.dumps(among))
    assert alone.digest == among.digest
    assert len({NewerDeletes(SharedDeletes(newer), start).digest for start in range(3)} | {alone.digest}) == 3
    assert alone != NewerDeletes(SharedDeletes(newer), 1)
    assert alone != tuple(newer)
