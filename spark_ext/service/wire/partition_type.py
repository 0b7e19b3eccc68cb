"""The type of `_partition`: a struct of every partition field that a table has had."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.table.metadata import TableMetadata

from spark_ext.service.wire.arrow_stream import spark_type_of_arrow
from tableformat.metadata.partition_column import partition_column


def partition_arrow_type(metadata: TableMetadata) -> pa.StructType:
    """The struct's Arrow type; without fields for a table that never was partitioned."""
    column = partition_column(metadata, [])
    return pa.struct([]) if column is None else column.type


def spark_partition_type(struct: pa.StructType) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [
            {"name": field.name, "type": spark_type_of_arrow(field.type, field.name), "nullable": True, "metadata": {}}
            for field in struct
        ],
    }
