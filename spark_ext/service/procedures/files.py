"""Procedures that remove old snapshots and their files, and orphan files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import pyarrow as pa

from spark_ext.service.procedures.procedure import STRING_MAP, Parameter, Rows, array_of, not_null, procedure
from spark_ext.service.procedures.rewrites import DRY_RUN
from tableformat.errors import InvalidArgumentError
from tableformat.table import Table

_EXPIRED: Final = (
    "deleted_data_files_count",
    "deleted_position_delete_files_count",
    "deleted_equality_delete_files_count",
    "deleted_manifest_files_count",
    "deleted_manifest_lists_count",
    "deleted_statistics_files_count",
)
_EXPIRED_HERE: Final = ("deleted_range_delete_files_count", "expired_snapshots_count", "freed_bytes")
_MAX_CONCURRENT_DELETES: Final = Parameter(
    "max_concurrent_deletes", "integer", "Accepted as a hint of Iceberg, without effect."
)
_STREAM_RESULTS: Final = Parameter("stream_results", "boolean", "Accepted as a hint of Iceberg, without effect.")


@procedure(
    Parameter("older_than", "timestamp", "Snapshots before this time expire; five days ago by default."),
    Parameter(
        "retain_last", "integer", "Number of ancestors of each branch to retain regardless of age; 1 by default."
    ),
    _MAX_CONCURRENT_DELETES,
    _STREAM_RESULTS,
    Parameter("snapshot_ids", array_of("long"), "Snapshots to expire regardless of age."),
    Parameter("clean_expired_metadata", "boolean", "Whether unused schemas and partition specs are removed too."),
    DRY_RUN,
    Parameter("clean_expired_files", "boolean", "Whether unneeded files are removed; true by default."),
    columns=pa.schema([(name, pa.int64()) for name in _EXPIRED]),
    more_columns=not_null(pa.int64(), *_EXPIRED_HERE),
    on_branch=False,
)
def expire_snapshots(
    table: Table,
    *,
    older_than: datetime | None = None,
    retain_last: int | None = None,
    max_concurrent_deletes: int | None = None,
    stream_results: bool = False,  # noqa: ARG001  a hint
    snapshot_ids: Sequence[int] = (),
    clean_expired_metadata: bool = False,
    dry_run: bool = False,
    clean_expired_files: bool = True,
) -> Rows:
    """Expire old snapshots of the whole table, and remove the files that no remaining snapshot, branch or tag needs."""
    _check_positive(max_concurrent_deletes)
    result = table.maintenance.expire_snapshots(
        older_than=older_than,
        retain_last=retain_last,
        snapshot_ids=tuple(snapshot_ids),
        dry_run=dry_run,
        clean_expired_files=clean_expired_files,
        clean_expired_metadata=clean_expired_metadata,
    )
    return [{name: getattr(result, name) for name in (*_EXPIRED, *_EXPIRED_HERE)}]


@procedure(
    Parameter(
        "older_than",
        "timestamp",
        "Files written before this time are removed; three days ago by default, at most a day ago.",
    ),
    Parameter("location", "string", "A directory of the table; all directories by default."),
    DRY_RUN,
    _MAX_CONCURRENT_DELETES,
    Parameter(
        "file_list_view",
        "string",
        "A view with file_path and last_modified, instead of a listing.",
        role="file_list",
    ),
    Parameter("equal_schemes", STRING_MAP, "Schemes that are equal: map('wasb,abfs', 'abfss')."),
    Parameter("equal_authorities", STRING_MAP, "Authorities that are equal."),
    Parameter(
        "prefix_mismatch_mode", "string", "What to do about files listed under another prefix: ERROR, IGNORE, DELETE."
    ),
    Parameter("prefix_listing", "boolean", "Accepted as a hint of Iceberg, without effect."),
    _STREAM_RESULTS,
    Parameter(
        "allow_recent",
        "boolean",
        "Allow an older_than less than a day ago, if nobody else writes to the table.",
        value_in_tests=True,
    ),
    columns=pa.schema(not_null(pa.string(), "orphan_file_location")),
    more_columns=not_null(pa.bool_(), "is_removed"),
    changes_table=False,
    on_branch=False,
)
def remove_orphan_files(
    table: Table,
    *,
    older_than: datetime | None = None,
    location: str | None = None,
    dry_run: bool = False,
    max_concurrent_deletes: int | None = None,
    file_list_view: pa.Table | None = None,
    equal_schemes: Mapping[str, str] | None = None,
    equal_authorities: Mapping[str, str] | None = None,
    prefix_mismatch_mode: str = "ERROR",
    prefix_listing: bool = False,  # noqa: ARG001  a hint
    stream_results: bool = False,  # noqa: ARG001  a hint
    allow_recent: bool = False,
) -> Rows:
    """Remove files in the table's directory that the table does not reference, such as those left by failed writers."""
    _check_positive(max_concurrent_deletes)
    result = table.maintenance.remove_orphan_files(
        older_than=older_than,
        location=location,
        dry_run=dry_run,
        allow_recent=allow_recent,
        file_list=file_list_view,
        equal_schemes=equal_schemes,
        equal_authorities=equal_authorities,
        prefix_mismatch_mode=prefix_mismatch_mode,
    )
    kept = frozenset(result.undeleted_file_locations)
    return [
        {"orphan_file_location": each, "is_removed": not dry_run and each not in kept}
        for each in result.orphan_file_locations
    ]


def _check_positive(max_concurrent_deletes: int | None) -> None:
    if max_concurrent_deletes is not None and max_concurrent_deletes < 1:
        raise InvalidArgumentError(f"max_concurrent_deletes must be above 0, not {max_concurrent_deletes}.")
