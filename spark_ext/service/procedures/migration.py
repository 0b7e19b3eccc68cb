"""Procedures that adopt existing data: metadata files, Parquet files, tables of Spark's session catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

import pyarrow as pa

from spark_ext.service.ddl.staged_tables import abort_staged_table, commit_staged_table, stage_table
from spark_ext.service.procedures.procedure import STRING_MAP, Parameter, Rows, not_null, procedure
from spark_ext.service.procedures.source_files import SourceFile, has_partition, source_files
from spark_ext.service.registry import Request
from spark_ext.service.session import Session
from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.storage.location import one_spelling
from tableformat.table import Table

_PARALLELISM: Final = Parameter("parallelism", "integer", "Accepted as a hint of Iceberg, without effect.")
_IGNORE_MISSING: Final = Parameter(
    "ignore_missing_files", "boolean", "Accepted as a hint of Iceberg: files are always listed again."
)
_PROPERTIES: Final = Parameter("properties", STRING_MAP, "Properties of the new table.")


@procedure(
    Parameter("table", "string", "Name of the new table.", is_required=True, role="name"),
    Parameter("metadata_file", "string", "Its current metadata file.", is_required=True),
    columns=pa.schema(
        [(name, pa.int64()) for name in ("current_snapshot_id", "total_records_count", "total_data_files_count")]
    ),
    has_table=False,
)
def register_table(session: Session, *, table: tuple[str, ...], metadata_file: str) -> Rows:
    """Register a table that exists as files in the catalog. No other catalog may still contain it."""
    if not metadata_file:
        raise InvalidArgumentError("register_table: metadata_file is empty; pass the metadata file of the table.")
    registered = session.catalog.register_table(table, metadata_file)
    snapshot = registered.at().snapshot
    summary: Mapping[str, str] = {}
    if snapshot is not None and snapshot.summary is not None:
        summary = snapshot.summary.additional_properties
    return [
        {
            "current_snapshot_id": registered.snapshot_id,
            "total_records_count": _count(summary, "total-records"),
            "total_data_files_count": _count(summary, "total-data-files"),
        }
    ]


def _count(summary: Mapping[str, str], name: str) -> int | None:
    return int(summary[name]) if name in summary else None


@procedure(
    Parameter(
        "source_table",
        "string",
        "A table of Spark's session catalog, or `parquet`.`path`.",
        is_required=True,
        role="source",
    ),
    Parameter("partition_filter", STRING_MAP, "Values of partition columns of the source."),
    Parameter(
        "check_duplicate_files", "boolean", "Whether files that the table already has are an error; true by default."
    ),
    _PARALLELISM,
    columns=pa.schema([*not_null(pa.int64(), "added_files_count"), ("changed_partition_count", pa.int64())]),
)
def add_files(
    table: Table,
    *,
    source_table: Mapping[str, Any],
    partition_filter: Mapping[str, str] | None = None,
    check_duplicate_files: bool = True,
    parallelism: int = 1,
) -> Rows:
    """Add the Parquet files of a directory or of another table to this table, without copying them. An existing source
    without files adds none."""
    _check_positive(parallelism)
    found = source_files(source_table, table.iceberg.io, partition_filter or {})
    if partition_filter and not found and not has_partition(source_table, partition_filter):
        raise InvalidArgumentError(f"add_files: no partition of the source has {dict(partition_filter)}.")
    _add(table, found, check_duplicate_files=check_duplicate_files)
    return [{"added_files_count": len(found), "changed_partition_count": len({tuple(f.values.items()) for f in found})}]


def _add(table: Table, found: Sequence[SourceFile], *, check_duplicate_files: bool) -> None:
    if found:
        table.add_files(
            [file.location for file in found],
            partitions=[file.values for file in found],
            check_duplicate_files=check_duplicate_files,
        )


@procedure(
    Parameter("source_table", "string", "A table of Spark's session catalog.", is_required=True, role="source"),
    Parameter("table", "string", "Name of the new table.", is_required=True, role="name"),
    Parameter("location", "string", "The location of the new table; chosen by the catalog by default."),
    _PROPERTIES,
    _PARALLELISM,
    _IGNORE_MISSING,
    columns=pa.schema(not_null(pa.int64(), "imported_files_count")),
    has_table=False,
)
def snapshot(
    session: Session,
    *,
    source_table: Mapping[str, Any],
    table: tuple[str, ...],
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
    parallelism: int = 1,
    ignore_missing_files: bool = False,  # noqa: ARG001  a hint
) -> Rows:
    """Create a table with the columns, partitions and files of a table in Spark's session catalog, which stays
    unchanged. The files are not copied and never removed."""
    _check_positive(parallelism)
    if "path" in source_table:
        raise InvalidArgumentError(
            "snapshot: source_table must be a table of Spark's session catalog, because files do not define how a "
            "table is partitioned. Create a table and add the files with add_files."
        )
    if source_table["bucketed"]:
        raise UnsupportedFeatureError(
            f"snapshot: {source_table['name']} has Spark buckets, which tables of this catalog do not support. Use "
            "CREATE TABLE ... AS SELECT."
        )
    _check_apart(source_table, location)
    staged = stage_table(session, Request(_new_table(table, source_table, location, properties or {})))
    pin = staged["pin"]
    try:
        made = session.load(tuple(pin["table"]))
        found = source_files(source_table, made.iceberg.io, {})
        _add(made, found, check_duplicate_files=False)
    except BaseException:
        abort_staged_table(session, Request({"pin": pin}))
        raise
    commit_staged_table(session, Request({"pin": pin}))
    return [{"imported_files_count": len(found)}]


def _new_table(
    table: tuple[str, ...], source: Mapping[str, Any], location: str | None, properties: Mapping[str, str]
) -> dict[str, Any]:
    """The arguments of a CREATE TABLE."""
    given = {**properties, "provider": "iceberg", "gc.enabled": "false", "snapshot": "true"}
    return {
        "table": list(table),
        "kind": "create",
        "columns": [
            {
                "name": field["name"],
                "type": field["type"],
                "nullable": field["nullable"],
                "comment": field["metadata"].get("comment"),
            }
            for field in source["columns"]
        ],
        "partitioning": [
            {"transform": "identity", "arguments": [{"column": [name]}]} for name in source["partition_columns"]
        ],
        "properties": given if location is None else {**given, "location": location},
        "key": [],
        "checks": [],
    }


def _check_apart(source: Mapping[str, Any], location: str | None) -> None:
    """Raises InvalidArgumentError if one directory contains the other: the files of the two tables could not be
    distinguished."""
    if location is None:
        return
    theirs, ours = (f"{one_spelling(place).rstrip('/')}/" for place in (source["location"], location))
    if theirs.startswith(ours) or ours.startswith(theirs):
        raise InvalidArgumentError(
            f"snapshot: the location {location} and the location of {source['name']}, {source['location']}, overlap; "
            "choose another location."
        )


@procedure(
    Parameter("table", "string", "Name of the table.", is_required=True),
    _PROPERTIES,
    Parameter("drop_backup", "boolean", "Not supported."),
    Parameter("backup_table_name", "string", "Not supported."),
    _PARALLELISM,
    _IGNORE_MISSING,
    columns=pa.schema(not_null(pa.int64(), "migrated_files_count")),
    has_table=False,
)
def migrate(session: Session, *, table: str, **others: Any) -> NoReturn:  # noqa: ARG001  it is refused
    """Not supported: a table of Spark's session catalog cannot become one of this catalog under the same name."""
    raise UnsupportedFeatureError(
        f"migrate: {table} is in Spark's session catalog, but this catalog has its own tables, so the table cannot "
        f"keep its name. CALL snapshot('{table}', 'namespace.table') creates a table with the same files here. The "
        "original table must be EXTERNAL, otherwise dropping it removes the files. Drop it when nothing writes to it "
        "any more."
    )


def _check_positive(parallelism: int) -> None:
    if parallelism < 1:
        raise InvalidArgumentError(f"parallelism must be above 0, not {parallelism}.")
