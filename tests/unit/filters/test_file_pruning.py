"""Pruning many files at once with a filter gives the same result as one file at a time."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from bounded_files import bounded_files
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

from tableformat.filters.bound_filter import bind_filter
from tableformat.filters.file_pruning import FilePruning
from tableformat.filters.predicate import parse_where

KINDS = [LongType(), StringType(), TimestampType()]
SCHEMA = Schema(*(NestedField(number, f"c{number}", kind, required=False) for number, kind in enumerate(KINDS, 1)))


def test_file_is_pruned_by_its_partition_value() -> None:
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "c1"), spec_id=0)
    bound = bind_filter(parse_where("c1 = 2", SCHEMA), SCHEMA)
    (data,) = bounded_files([], Random(1), 1)
    pruning = FilePruning(bound, {0: spec}, SCHEMA)
    assert [pruning.may_hold_match(replace(data, partition=(value,))) for value in (1, 2, None)] == [False, True, False]
