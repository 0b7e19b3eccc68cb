"""The names of the fields in the struct of all partition fields."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from new_lakes import new_lake

from spark_ext.service.wire.partition_type import default_fields_of_specs, grouping_type
from tableformat.metadata.partition_column import partition_column, partition_labels


def test_fields_of_one_name_and_a_field_that_was_renamed(tmp_path: Path) -> None:
    """SP-40: what a scan reports is looked up in the struct by what that calls it."""
    lake = new_lake(tmp_path)
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]), partition_by=["bucket(4, id)"])
    [first] = table.metadata.spec().fields
    with table.update_spec() as update:
        update.remove_field(first.name)
    with table.refresh().update_spec() as update:
        update.add_field("id", "bucket[8]", first.name)
    metadata = table.refresh().metadata
    assert partition_labels(metadata) == {1000: f"{first.name}_1000", 1001: f"{first.name}_1001"}
    with table.update_spec() as update:
        update.rename_field(first.name, "shard")
    metadata = table.refresh().metadata
    assert partition_labels(metadata) == {1000: first.name, 1001: "shard"}
    with table.update_spec() as update:
        update.rename_field("shard", first.name)
    metadata = table.refresh().metadata
    column = partition_column(metadata, [])
    assert column is not None
    for known in (grouping_type(metadata).names, *default_fields_of_specs(metadata).values()):
        assert set(known) <= set(column.type.names)
