"""One question in both directions: the deletes that may apply to a data file, and the data files that a delete may
apply to."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from tableformat.merge_on_read.applicable_deletes import ApplicableDeletes, reached_data_files
from tableformat.metadata.content_file import DataFile, DeleteFile, FileContent

METADATA = TableMetadataV2(
    location="/nowhere",
    last_column_id=2,
    schemas=[
        Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "day", StringType(), required=False))
    ],
    current_schema_id=0,
    partition_specs=[
        PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"), spec_id=0),
        PartitionSpec(spec_id=1),
    ],
    default_spec_id=0,
    last_partition_id=1000,
)


def _ids(lower: int, upper: int) -> dict[str, Any]:
    return {
        "value_counts": {1: 10},
        "null_value_counts": {1: 0},
        "lower_bounds": {1: to_bytes(LongType(), lower)},
        "upper_bounds": {1: to_bytes(LongType(), upper)},
    }


def data(path: str, day: str, lower: int, upper: int) -> DataFile:
    """Ids from `lower` to `upper` of a day, committed as number 5."""
    return DataFile(
        file_path=path,
        file_format="PARQUET",
        spec_id=0,
        partition=(day,),
        record_count=10,
        file_size_bytes=100,
        sequence_number=5,
        **_ids(lower, upper),
    )


def delete(path: str, day: str | None, number: int = 6, **changes: Any) -> DeleteFile:
    """Position deletes of a day; with `equality_ids` an equality delete, without a day of all of them."""
    keyed = "equality_ids" in changes
    described: dict[str, Any] = {
        "content": FileContent.EQUALITY_DELETES if keyed else FileContent.POSITION_DELETES,
        "file_path": path,
        "file_format": "PARQUET",
        "spec_id": 1 if day is None else 0,
        "partition": () if day is None else (day,),
        "record_count": 1,
        "file_size_bytes": 10,
        "sequence_number": number,
    }
    return DeleteFile(**(described | changes))


DATA = (data("low", "mon", 0, 9), data("high", "mon", 10, 19), data("other", "tue", 0, 9))
DELETES = {
    "by name": delete("by name", "mon", referenced_data_file="high"),
    "by partition": delete("by partition", "tue"),
    "vector": delete("vector", "mon", file_format="PUFFIN", referenced_data_file="low"),
    "equality in one day": delete("equality in one day", "mon", equality_ids=(1,), **_ids(3, 12)),
    "equality everywhere": delete("equality everywhere", None, equality_ids=(1,), **_ids(9, 9)),
    "equality beside": delete("equality beside", None, equality_ids=(1,), **_ids(20, 30)),
    "equality of the same commit": delete("equality of the same commit", None, 5, equality_ids=(1,), **_ids(0, 9)),
    "position older": delete("position older", "tue", 4),
}
REACHED = {
    "by name": ["high"],
    "by partition": ["other"],
    "vector": ["low"],
    "equality in one day": ["low", "high"],
    "equality everywhere": ["low", "other"],
    "equality beside": [],
    "equality of the same commit": [],
    "position older": [],
}


@pytest.mark.parametrize("name", DELETES)
def test_deletes_apply_by_sequence_number_scope_and_bounds(name: str) -> None:
    """DA-1, DA-2, DA-3, DA-7"""
    reached = reached_data_files(METADATA, DATA, [DELETES[name]])
    assert [file.file_path for file in reached] == REACHED[name]
    applicable = ApplicableDeletes(METADATA, [DELETES[name]])
    assert [file.file_path for file in DATA if applicable.of(file)] == REACHED[name]


def test_deletes_of_a_file_are_positions_then_keys() -> None:
    """DA-7: the vector stands for the position deletes of its file, and for no others."""
    applicable = ApplicableDeletes(METADATA, DELETES.values())
    found = {file.file_path: [delete.file_path for delete in applicable.of(file)] for file in DATA}
    assert found == {
        "low": ["vector", "equality everywhere", "equality in one day"],
        "high": ["by name", "equality in one day"],
        "other": ["by partition", "equality everywhere"],
    }


def test_partition_and_file_scoped_position_deletes_combine() -> None:
    """DA-1"""
    both = [DELETES["by name"], DELETES["by partition"]]
    assert [file.file_path for file in reached_data_files(METADATA, DATA, both)] == ["high", "other"]


def test_no_deletes_affect_no_files() -> None:
    assert reached_data_files(METADATA, DATA, []) == []
