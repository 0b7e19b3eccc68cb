"""SP-32: metadata tables, such as `db.t.snapshots` and `db.t.files`, with Iceberg's columns.

Our additional columns are hidden: a statement can select them by name, but `SELECT *` has the same columns as in
Iceberg.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pat

from spark_ext.service.registry import Answer, Request, method
from spark_ext.service.session import Pin, Session
from spark_ext.service.wire.arrow_stream import arrow_stream, spark_schema_of_arrow
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.readable_metrics import READABLE_METRICS
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.inspect import Inspect
from tableformat.operations.position_delete_rows import position_delete_files

POSITION_DELETES: Final = "position_deletes"
_OF_FILES: Final = ("kind", "sequence_number")
_OF_MANIFESTS: Final = ("sequence_number", "min_sequence_number")
_TABLES: Final = {
    "snapshots": Inspect.snapshots,
    "history": Inspect.history,
    "files": Inspect.files,
    "data_files": Inspect.data_files,
    "delete_files": Inspect.delete_files,
    "manifests": Inspect.manifests,
    "partitions": Inspect.partitions,
    "range_partitions": Inspect.range_partitions,
    "range_partition_history": Inspect.range_partition_history,
    "refs": Inspect.refs,
    "entries": Inspect.entries,
    "metadata_log_entries": Inspect.metadata_log_entries,
    POSITION_DELETES: Inspect.position_deletes,
    "all_files": Inspect.all_files,
    "all_data_files": Inspect.all_data_files,
    "all_delete_files": Inspect.all_delete_files,
    "all_entries": Inspect.all_entries,
    "all_manifests": Inspect.all_manifests,
}
_HIDDEN: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("files", "data_files", "delete_files"), _OF_FILES),
    **dict.fromkeys(("all_files", "all_data_files", "all_delete_files"), _OF_FILES),
    **dict.fromkeys(("entries", "all_entries"), ("kind",)),
    **dict.fromkeys(("manifests", "all_manifests"), _OF_MANIFESTS),
}
"""Columns that the Iceberg table of this name lacks."""
_LARGEST_POSITION_DELETES: Final = 2_000_000
"""The limit for rows, which Spark's driver holds in memory."""


def is_metadata_table(name: str) -> bool:
    return name.lower() in _TABLES


def describe(session: Session, name: str, pin: Pin) -> dict[str, Any]:
    """SP-32: the description of a metadata table for MetadataTable of the Java side: its columns, and hidden ones."""
    schema = _rows(_inspect(_without_snapshots(session.view(pin)), pin), name).schema
    hidden = _HIDDEN.get(name.lower(), ())
    return {
        "is_metadata_table": True,
        "pin": pin.to_json(),
        "schema": spark_schema_of_arrow(pa.schema([field for field in schema if field.name not in hidden])),
        "hidden": spark_schema_of_arrow(pa.schema([schema.field(column) for column in hidden])),
    }


@method("read_metadata_table")
def read_metadata_table(session: Session, request: Request) -> Answer:
    """The rows, with the `columns` that the statement reads."""
    pin, columns = Pin.from_json(request.arguments["pin"]), request.arguments["columns"]
    inspect = _inspect(session.view(pin), pin, has_readable_metrics=READABLE_METRICS in columns)
    rows = _rows(inspect, request.table[-1])
    return Answer(None, [arrow_stream(rows.select(columns))])


def _inspect(view: SnapshotView, pin: Pin, *, has_readable_metrics: bool = True) -> Inspect:
    return Inspect(view, pin.branch, pin.metadata_location, has_readable_metrics)


def _without_snapshots(view: SnapshotView) -> SnapshotView:
    """The same table without rows in any metadata table, to determine the columns."""
    metadata = view.metadata.model_copy(update={"snapshots": [], "current_snapshot_id": None, "metadata_log": []})
    return SnapshotView(metadata, view.io, None, view.schema)


def _rows(inspect: Inspect, name: str) -> pa.Table:
    if name.lower() == POSITION_DELETES:
        _refuse_too_many(inspect)
    rows = _TABLES[name.lower()](inspect)
    if "data_file" in rows.column_names:
        rows = _with_kind_beside(rows)
    return rows.cast(pa.schema([field.with_type(_readable(field.type)) for field in rows.schema]))


def _readable(arrow: pa.DataType) -> pa.DataType:
    """The type in Spark. Bounds and partition values of types that the catalog, or some Spark version, does not read
    become text."""
    if pat.is_time(arrow) or (pat.is_timestamp(arrow) and arrow.unit == "ns"):
        return pa.string()
    if pat.is_struct(arrow):
        return pa.struct([field.with_type(_readable(field.type)) for field in arrow])
    if pat.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(_readable(arrow.value_type)))
    return arrow


def _with_kind_beside(entries: pa.Table) -> pa.Table:
    """Move the kind of an entry's file to a column of its own, because the struct of the file has Iceberg's fields
    only."""
    file = entries["data_file"].combine_chunks()
    place = file.type.get_field_index("kind")
    theirs = [field for field in file.type if field.name != "kind"]
    struct = pa.StructArray.from_arrays([file.field(field.name) for field in theirs], fields=theirs)
    kinds = file.field(place)
    return entries.set_column(entries.schema.get_field_index("data_file"), "data_file", struct).append_column(
        "kind", kinds
    )


def _refuse_too_many(inspect: Inspect) -> None:
    count = sum(file.record_count for file in position_delete_files(inspect.view))
    if count > _LARGEST_POSITION_DELETES:
        raise InvalidArgumentError(
            f"position_deletes would have {count:,} rows, but the limit for Spark's driver is "
            f"{_LARGEST_POSITION_DELETES:,}. Read delete_files for the counts, or use "
            "table.inspect.position_deletes() in Python."
        )
