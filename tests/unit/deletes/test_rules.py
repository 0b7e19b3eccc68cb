"""The predicates of `deletes/rules.py`: one test for each rule."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tableformat.deletes.rules import (
    equality_delete_is_new_enough,
    position_delete_is_new_enough,
    range_delete_is_new_enough,
    shares_partition,
)
from tableformat.metadata.content_file import DataFile, DeleteFile, FileContent
from tableformat.metadata.partition_identity import partition_of

DATA = DataFile(file_path="data", file_format="PARQUET", spec_id=1, partition=(1.0,), record_count=1, file_size_bytes=1)
DELETE = DeleteFile(
    content=FileContent.POSITION_DELETES,
    file_path="deletes",
    file_format="PARQUET",
    spec_id=1,
    partition=(1.0,),
    record_count=1,
    file_size_bytes=1,
)


@pytest.mark.parametrize(("delete", "data", "applies"), [(4, 5, False), (5, 5, True), (6, 5, True)])
def test_position_delete_applies_to_rows_of_its_own_commit(delete: int, data: int, applies: bool) -> None:
    """DA-1"""
    assert position_delete_is_new_enough(delete, data) is applies


@pytest.mark.parametrize("is_new_enough", [equality_delete_is_new_enough, range_delete_is_new_enough])
@pytest.mark.parametrize(("delete", "data", "applies"), [(4, 5, False), (5, 5, False), (6, 5, True)])
def test_keyed_delete_does_not_apply_to_rows_of_its_own_commit(
    is_new_enough, delete: int, data: int, applies: bool
) -> None:
    """DA-2, RD-2"""
    assert is_new_enough(delete, data) is applies


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ((math.nan,), (float("nan"),), True),
        ((0.0,), (-0.0,), False),
        ((None,), (None,), True),
        ((1.5, "a"), (1.5, "a"), True),
        ((1.5, "a"), (1.5, "b"), False),
    ],
)
def test_float_partitions_are_compared_by_bits(one: tuple, other: tuple, same: bool) -> None:
    """DA-3: all NaNs are one partition; the zeros are two."""
    delete, data = replace(DELETE, partition=one), replace(DATA, partition=other)
    assert shares_partition(delete, data) is same
    assert (hash(partition_of(delete)) == hash(partition_of(data))) is same


def test_equal_values_of_another_spec_are_another_partition() -> None:
    """DA-3"""
    assert not shares_partition(DELETE, replace(DATA, spec_id=2))
