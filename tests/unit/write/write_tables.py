"""Tables that the writer tests share: the schema of the demo, in a local directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, IntegerType, LongType, NestedField, StringType, TimestampType

from tableformat.write.context import WriteContext

SCHEMA = Schema(
    NestedField(1, "id1", StringType(), required=True),
    NestedField(2, "id2", LongType(), required=True),
    NestedField(3, "num_cal", IntegerType(), required=True),
    NestedField(4, "day", DateType(), required=False),
    NestedField(5, "ts", TimestampType(), required=False),
    identifier_field_ids=[1, 2, 3],
)


def context(
    directory: Path,
    *partition_fields: PartitionField,
    schema: Schema = SCHEMA,
    key: tuple[int, ...] = (1, 2, 3),
    format_version: int = 2,
    properties: Mapping[str, str] | None = None,
) -> WriteContext:
    spec = PartitionSpec(*partition_fields, spec_id=1 if partition_fields else 0)
    return WriteContext(
        schema=schema,
        spec=spec,
        specs={0: PartitionSpec(spec_id=0), spec.spec_id: spec},
        table_location=str(directory / "table"),
        properties=dict(properties or {}),
        io=PyArrowFileIO(),
        key_field_ids=key,
        format_version=format_version,
    )


def rows(*keys: tuple[str, int, int]) -> pa.Table:
    """Rows with these keys and nothing else."""
    return pa.table(
        {
            "id1": pa.array([key[0] for key in keys], pa.string()),
            "id2": pa.array([key[1] for key in keys], pa.int64()),
            "num_cal": pa.array([key[2] for key in keys], pa.int32()),
        }
    )


def files_under(directory: Path) -> list[str]:
    return sorted(str(path) for path in directory.rglob("*") if path.is_file())
