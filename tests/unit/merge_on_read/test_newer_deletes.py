"""Data files that most of many equality deletes apply to share one list of deletes, and its keys are built once."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from test_delete_index import SPECS, TYPES, bounds, data, equality, paths

import tableformat as tf
from tableformat.deletes.matching.equality import EqualityKeys
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


def test_a_file_that_most_deletes_meet_gets_all_newer_ones() -> None:
    """DA-2: deletes that its bounds rule out are included, older deletes are not."""
    meeting, others = deletes_between(0, 9), deletes_between(20, 29, count=5)
    older = deletes_between(0, 9, count=3, first_number=1)
    found = shared_of([*others, *meeting, *older], data(number=5, **bounds(1, 3, 4)))
    assert isinstance(found, NewerDeletes)
    assert paths(found) == paths([*meeting, *others])
    assert len(found) == len(found.shared.deletes) - 3
    assert found.record_count == len(found)


def test_a_file_that_few_deletes_meet_gets_these() -> None:
    meeting, others = deletes_between(0, 9), deletes_between(20, 29)
    file = data(number=5, **bounds(1, 23, 24))
    assert shared_of([*meeting, *others[:4]], file) == tuple(others[:4])
    assert shared_of([*meeting, *others], data(number=5, **bounds(1, 12, 13))) == ()
    assert shared_of(meeting[: SHARED_FROM - 1], data(number=5)) == tuple(meeting[: SHARED_FROM - 1])


def test_deletes_of_several_scopes_are_listed() -> None:
    """DA-3: a shared list is of one scope and one list of columns."""
    everywhere, here = deletes_between(0, 9), equality("here", 7, **bounds(1, 0, 9))
    found = shared_of([*everywhere, here], data(number=5))
    assert isinstance(found, tuple)
    assert paths(found) == paths([*everywhere, here])


def test_what_identifies_newer_deletes_is_not_what_was_before_them() -> None:
    older, newer = deletes_between(0, 9, first_number=1), deletes_between(0, 9, first_number=100)
    alone = NewerDeletes(SharedDeletes(newer), 0)
    among = NewerDeletes(SharedDeletes([*newer, *older]), len(older))
    assert alone == among == pickle.loads(pickle.dumps(among))
    assert alone.digest == among.digest
    assert len({NewerDeletes(SharedDeletes(newer), start).digest for start in range(3)} | {alone.digest}) == 3
    assert alone != NewerDeletes(SharedDeletes(newer), 1)
    assert alone != tuple(newer)


def _get(table: tf.Table, model: dict[int, int]) -> None:
    for key in (1, 50, 98):
        assert table.get((key,)) == {"id": key, "v": model[key]}


def _update(table: tf.Table, model: dict[int, int]) -> None:
    table.update(where="v >= 0", set={"v": "v + 1"})
    model.update({key: value + 1 for key, value in model.items()})


def _convert(table: tf.Table, model: dict[int, int]) -> None:
    assert table.maintenance.convert_deletes().removed_equality_delete_files_count == COMMITS


def _compact(table: tf.Table, model: dict[int, int]) -> None:
    assert table.maintenance.compact(delete_ratio_threshold=0.01).added_data_files_count == 1


@pytest.mark.parametrize(("verb", "at_most"), [(_get, 1), (_update, 2), (_convert, 1), (_compact, 1)])
def test_keys_of_many_deletes_are_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: Callable[[tf.Table, dict[int, int]], None], at_most: int
) -> None:
    """Upserts of keys in random order: all later deletes apply to every file."""
    catalog = tf.open_catalog(tmp_path / "lake")
    catalog.create_namespace("db")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
    table = catalog.create_table("db.t", schema, key=["id"], properties={"tableformat.upkeep": "off"})
    model = dict.fromkeys(range(100), 0)
    table.append(pa.table({"id": list(model), "v": list(model.values())}))
    random = np.random.default_rng(3)
    for number in range(1, COMMITS + 1):
        keys = [0, 99, *random.choice(np.arange(1, 99), 8, replace=False).tolist()]
        table.upsert(pa.table({"id": keys, "v": [number] * len(keys)}))
        model.update(dict.fromkeys(keys, number))
    made = []
    original = EqualityKeys.collapse.__func__  # type: ignore[attr-defined]

    def counted(cls: type[EqualityKeys], *arguments: object) -> object:
        made.append(len(arguments[2]))  # type: ignore[arg-type]
        return original(cls, *arguments)

    monkeypatch.setattr(EqualityKeys, "collapse", classmethod(counted))
    verb(table, model)
    assert len(made) <= at_most, made
    rows = table.scan().to_arrow()
    assert dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True)) == model
