"""Pruning many files at once with a filter gives the same result as one file at a time."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from bounded_files import bounded_files
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

from tableformat.filters.bound_filter import FALSE, BoundFilter, bind_filter
from tableformat.filters.file_pruning import FilePruning, residual_by_bounds
from tableformat.filters.predicate import parse_where
from tableformat.metadata.columns.data_columns import columns_of_files
from tableformat.metadata.content_file import DataFile

KINDS = [LongType(), StringType(), TimestampType()]
SCHEMA = Schema(*(NestedField(number, f"c{number}", kind, required=False) for number, kind in enumerate(KINDS, 1)))
EPOCH = "TIMESTAMP '1970-01-01'"


def left_alone(bound: BoundFilter, data: DataFile) -> BoundFilter:
    return FALSE if data.record_count == 0 else residual_by_bounds(bound, data)


@pytest.mark.parametrize("limits", [{}, {"_TABLE_MAX": 0}, {"_CODES_MAX": 1, "_TABLE_MAX": 20}], ids=str)
@pytest.mark.parametrize(
    "where",
    [
        "c1 = 2",
        "c1 IN (-3, 4) OR c2 < 'ab'",
        "c1 > 0 AND c2 <> 'a' AND c1 IS NOT NULL",
        "c1 <= 3 AND (c2 LIKE 'a%' OR c1 NOT IN (1, 2) OR c2 IS NULL)",
        f"c3 >= {EPOCH}",
        f"(c3 < {EPOCH} OR c1 = 1) AND (c1 < 4 OR c3 = {EPOCH})",
        f"c3 <> {EPOCH} AND c1 >= 1",
        "c3 < TIMESTAMP '1969-12-31' AND c1 >= 1",
        "c3 > TIMESTAMP '1970-01-02' AND c1 >= 1",
    ],
)
def test_many_files_are_pruned_as_one_by_one(
    where: str, limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds of dates that do not fit into a timestamp are compared separately."""
    for name, limit in limits.items():
        monkeypatch.setattr(f"tableformat.filters.file_pruning.{name}", limit)
    random = Random(7)
    files = bounded_files(KINDS, random, 300)
    files += [replace(each, record_count=0) for each in files[:20]]
    bound = bind_filter(parse_where(where, SCHEMA), SCHEMA)
    pruning = FilePruning(bound, {0: PartitionSpec()}, SCHEMA)
    assert [pruning.may_hold_match(data) for data in files] == [
        residual_by_bounds(bound, data) is not FALSE for data in files
    ]
    found = pruning.keep(columns_of_files(files))
    alone = [left_alone(bound, data) for data in files]
    assert found.rows.tolist() == [row for row, left in enumerate(alone) if left is not FALSE]
    assert [found.residuals[index] for index in found.residual_ids.tolist()] == [
        left for left in alone if left is not FALSE
    ]
    assert found.skipped_by_bounds_count == len(files) - len(found.rows) > 0
    assert found.skipped_by_partition_count == 0


def test_a_file_is_ruled_out_by_its_partition_alone() -> None:
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "c1"), spec_id=0)
    bound = bind_filter(parse_where("c1 = 2", SCHEMA), SCHEMA)
    (data,) = bounded_files([], Random(1), 1)
    pruning = FilePruning(bound, {0: spec}, SCHEMA)
    assert [pruning.may_hold_match(replace(data, partition=(value,))) for value in (1, 2, None)] == [False, True, False]
