"""Predicates over transforms, evaluated on partitions: the files that they rule out, and the files whose rows need no
check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.types import LongType

from spark_ext.service.wire.partition_predicates import PartitionPredicates
from tableformat import Catalog, Table
from tableformat.errors import TableFormatError
from tableformat.scan.plan import ScanPlan


def call(transform: str, width: int | None, column: str) -> dict[str, Any]:
    widths = [] if width is None else [{"literal": str(width), "type": "integer"}]
    return {"transform": transform, "arguments": [*widths, {"column": [column]}]}


def compared(operator: str, left: dict[str, Any], value: object, spark_type: str = "integer") -> dict[str, Any]:
    return {"operator": operator, "arguments": [left, {"literal": str(value), "type": spark_type}]}


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with new_lake(tmp_path / "lake") as lake:
        yield lake


@pytest.fixture
def numbers(catalog: Catalog) -> Table:
    table = catalog.create_table("db.t", pa.schema([("n", pa.int32())]), partition_by=["truncate(10, n)"])
    table.append(pa.table({"n": pa.array([-(2**31), -1, 5, 25, None], pa.int32())}))
    return table


def plan(table: Table) -> ScanPlan:
    return table.scan().plan()


def test_non_matching_partitions_are_pruned(numbers: Table) -> None:
    """SP-46."""
    predicates = PartitionPredicates([compared("<", call("truncate", 10, "n"), 20)], numbers.view)
    kept = predicates.narrowed(plan(numbers))
    assert sorted(task.data_file.partition[0] for task in kept.tasks) == [-10, 0]
    assert predicates.decided_by(plan(numbers)) == [0]


def test_transform_of_another_width_excludes_nothing(numbers: Table) -> None:
    """SP-46: nor does half of an OR; half of an AND does, but decides nothing."""
    known, unknown = (compared("=", call("truncate", width, "n"), 0) for width in (10, 7))
    for predicate, count in ((unknown, 5), ({"operator": "OR", "arguments": [known, unknown]}, 5)):
        predicates = PartitionPredicates([predicate], numbers.view)
        assert len(predicates.narrowed(plan(numbers)).tasks) == count
        assert predicates.decided_by(plan(numbers)) == []
    both = PartitionPredicates([{"operator": "AND", "arguments": [known, unknown]}, known], numbers.view)
    assert len(both.narrowed(plan(numbers)).tasks) == 1
    assert both.decided_by(plan(numbers)) == [1]


def test_undecided_predicate_is_not_dropped(numbers: Table) -> None:
    """SP-46: Spark does not ask it of the rows any more."""
    predicates = PartitionPredicates([compared("=", call("truncate", 7, "n"), 0)], numbers.view)
    with pytest.raises(TableFormatError, match="Nothing was read"):
        predicates.narrowed(plan(numbers), [0])


def test_promoted_integers_that_wrapped_around_are_not_pruned(numbers: Table) -> None:
    """SP-46: the multiple of the lowest one is another as a long."""
    with numbers.update_schema() as change:
        change.update_column("n", field_type=LongType())
    predicates = PartitionPredicates([compared("<", call("truncate", 10, "n"), 20, "long")], numbers.view)
    assert len(predicates.narrowed(plan(numbers)).tasks) == 5
    assert predicates.decided_by(plan(numbers)) == []


def test_uuid_transform_predicates_are_not_pruned(catalog: Catalog) -> None:
    """SP-46: text has another bucket."""
    table = catalog.create_table("db.u", pa.schema([("u", pa.uuid())]), partition_by=["bucket(4, u)"])
    table.append(pa.table({"u": pa.array([UUID(int=n).bytes for n in range(8)], pa.uuid())}))
    predicates = PartitionPredicates([compared("=", call("bucket", 4, "u"), 1)], table.view)
    assert predicates.narrowed(plan(table)) == plan(table)
    assert predicates.decided_by(plan(table)) == []
