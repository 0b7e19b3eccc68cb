"""Procedures that rewrite the same rows into other files: compaction, conversion, manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

import pyarrow as pa

from spark_ext.service.executors import executor_of
from spark_ext.service.procedures.conditions import Part, file_condition
from spark_ext.service.procedures.options import Options, boolean
from spark_ext.service.procedures.procedure import (
    STRING_MAP,
    Parameter,
    Rows,
    array_of,
    not_null,
    procedure,
)
from tableformat.errors import InvalidArgumentError
from tableformat.maintenance.compaction.row_order import order_of_table, parsed_order, text_of
from tableformat.table import Table

DRY_RUN: Final = Parameter("dry_run", "boolean", "Only report what would be changed; false by default.")
_SNAPSHOT_ID: Final = pa.field("snapshot_id", pa.int64())
_OPTIONS: Final = Options(
    "rewrite_data_files",
    keywords={
        "target-file-size-bytes": ("target_file_size_bytes", int),
        "min-input-files": ("min_input_files", int),
        "rewrite-all": ("rewrite_all", boolean),
        "max-file-group-size-bytes": ("max_file_group_size_bytes", int),
        "delete-file-threshold": ("delete_file_threshold", int),
        "delete-ratio-threshold": ("delete_ratio_threshold", float),
        "partial-progress.enabled": ("partial_progress", boolean),
        "partial-progress.max-commits": ("max_commits", int),
        "remove-dangling-deletes": ("drop_dead_deletes", boolean),
        "depth": ("depth", str),
        "max-rewritten-bytes": ("max_rewritten_bytes", int),
    },
    hints=frozenset({"max-concurrent-file-group-rewrites", "shuffle-partitions-per-file"}),
    fixed={"use-starting-sequence-number": "true", "rewrite-job-order": "none"},
    refused={
        "min-file-size-bytes": "files below 75% of target-file-size-bytes are small",
        "max-file-size-bytes": "files above 180% of target-file-size-bytes are split",
        "partial-progress.max-failed-commits": "failed groups are planned again and then counted",
        "max-files-to-rewrite": "use max-rewritten-bytes to limit the bytes instead",
        "output-spec-id": "files stay in their partition spec",
        "compression-factor": "output files are measured while they are written",
        "var-length-contribution": "eight bytes of each column are interleaved, after the bytes that all values share",
        "max-output-size": "eight bytes of each column are interleaved, after the bytes that all values share",
    },
)
_POSITION_OPTIONS: Final = Options(
    "rewrite_position_delete_files",
    keywords={"min-input-files": ("min_input_files", int), "rewrite-all": ("rewrite_all", boolean)},
    hints=frozenset({"max-concurrent-file-group-rewrites"}),
    fixed={"partial-progress.enabled": "false", "rewrite-job-order": "none"},
    refused={
        "partial-progress.max-commits": "there is only one commit",
        **dict.fromkeys(
            ("target-file-size-bytes", "min-file-size-bytes", "max-file-size-bytes", "max-file-group-size-bytes"),
            "each data file has one position delete file of any size",
        ),
        "max-files-to-rewrite": "use where to limit the data files",
    },
)
_CONVERSION_OPTIONS: Final = Options(
    "convert_deletes",
    keywords={
        "partial-progress.enabled": ("partial_progress", boolean),
        "partial-progress.max-commits": ("max_commits", int),
    },
)


@procedure(
    Parameter("strategy", "string", "binpack or sort; files of a table with a key are always in key order."),
    Parameter("sort_order", "string", "'a, b DESC NULLS LAST' or 'zorder(a, b)', for a table without a key."),
    Parameter("options", STRING_MAP, "Options of Iceberg, depth and max-rewritten-bytes."),
    Parameter("where", "string", "Only files that may contain matching rows.", role="condition"),
    DRY_RUN,
    columns=pa.schema(
        [
            *not_null(pa.int32(), "rewritten_data_files_count", "added_data_files_count"),
            *not_null(pa.int64(), "rewritten_bytes_count"),
            *not_null(pa.int32(), "failed_data_files_count", "removed_delete_files_count"),
        ]
    ),
    more_columns=(
        *not_null(pa.int64(), "written_bytes_count", "deleted_rows_count"),
        *not_null(pa.int32(), "commits_count"),
        _SNAPSHOT_ID,
    ),
)
def rewrite_data_files(
    table: Table,
    *,
    strategy: str | None = None,
    sort_order: str | None = None,
    options: Mapping[str, str] | None = None,
    where: Sequence[Part] | None = None,
    dry_run: bool = False,
) -> Rows:
    """Rewrite data files if reads become cheaper: merge small files, separate overlapping ones, drop deleted rows."""
    # Iceberg's default is one commit.
    keywords: dict[str, Any] = {"partial_progress": False, **_OPTIONS.read(options or {})}
    keywords |= _order(table, strategy, sort_order)
    chosen = file_condition(where, table)
    result = table.maintenance.compact(
        where=chosen.where, only_paths=chosen.only_paths, executor=executor_of(table), dry_run=dry_run, **keywords
    )
    removed = result.removed_position_delete_files_count + result.removed_deletion_vectors_count
    removed += result.removed_equality_delete_files_count + result.removed_range_delete_files_count
    row = {
        "rewritten_data_files_count": result.rewritten_data_files_count,
        "added_data_files_count": result.added_data_files_count,
        "rewritten_bytes_count": result.rewritten_bytes,
        "failed_data_files_count": result.failed_data_files_count,
        "removed_delete_files_count": removed,
        "written_bytes_count": result.written_bytes,
        "deleted_rows_count": result.deleted_row_count,
        "commits_count": result.commit_count,
        "snapshot_id": table.snapshot_id,
    }
    return [row]


@procedure(
    Parameter("options", STRING_MAP, "partial-progress.enabled (true) and partial-progress.max-commits (10)."),
    Parameter(
        "where",
        "string",
        "Only data files that may contain matching rows; deletes that other files need are kept.",
        role="condition",
    ),
    DRY_RUN,
    columns=pa.schema(
        [
            *not_null(
                pa.int32(),
                "removed_equality_delete_files_count",
                "removed_range_delete_files_count",
                "removed_position_delete_files_count",
                "removed_deletion_vectors_count",
                "removed_data_files_count",
                "added_position_delete_files_count",
                "added_deletion_vectors_count",
            ),
            *not_null(pa.int64(), "deleted_rows_count", "rewritten_bytes_count"),
            *not_null(pa.int32(), "commits_count"),
            ("snapshot_id", pa.int64()),
        ]
    ),
)
def convert_deletes(
    table: Table,
    *,
    options: Mapping[str, str] | None = None,
    where: Sequence[Part] | None = None,
    dry_run: bool = False,
) -> Rows:
    """Convert equality and range deletes to position deletes, or on v3 tables to deletion vectors. Every Iceberg engine
    can then read the branch."""
    keywords = _CONVERSION_OPTIONS.read(options or {})
    chosen = file_condition(where, table)
    result = table.maintenance.convert_deletes(
        where=chosen.where, only_paths=chosen.only_paths, executor=executor_of(table), dry_run=dry_run, **keywords
    )
    row = {
        "removed_equality_delete_files_count": result.removed_equality_delete_files_count,
        "removed_range_delete_files_count": result.removed_range_delete_files_count,
        "removed_position_delete_files_count": result.removed_position_delete_files_count,
        "removed_deletion_vectors_count": result.removed_deletion_vectors_count,
        "removed_data_files_count": result.removed_data_files_count,
        "added_position_delete_files_count": result.added_position_delete_files_count,
        "added_deletion_vectors_count": result.added_deletion_vectors_count,
        "deleted_rows_count": result.deleted_row_count,
        "rewritten_bytes_count": result.rewritten_bytes,
        "commits_count": result.commit_count,
        "snapshot_id": result.snapshot_id,
    }
    return [row]


@procedure(
    DRY_RUN,
    columns=pa.schema(
        [
            *not_null(pa.string(), "rule", "cutoff"),
            *not_null(pa.int32(), "data_files_count"),
            *not_null(pa.int64(), "row_count_max"),
            ("snapshot_id", pa.int64()),
        ]
    ),
)
def apply_retention(table: Table, *, dry_run: bool = False) -> Rows:
    """Delete the rows that the property tableformat.retain no longer keeps. No rows are read. The result has a row for
    each rule."""
    return [result_fields(rule) for rule in table.maintenance.apply_retention(dry_run=dry_run).rules]


@procedure(
    DRY_RUN,
    columns=pa.schema(
        [
            *not_null(
                pa.int32(),
                "removed_position_delete_files_count",
                "removed_deletion_vectors_count",
                "removed_equality_delete_files_count",
                "removed_range_delete_files_count",
            ),
            *not_null(pa.int64(), "removed_bytes"),
            ("snapshot_id", pa.int64()),
        ]
    ),
)
def drop_dead_deletes(table: Table, *, dry_run: bool = False) -> Rows:
    """Remove delete files from the branch that can no longer match a live data file."""
    return [result_fields(table.maintenance.drop_dead_deletes(dry_run=dry_run))]


@procedure(
    DRY_RUN,
    columns=pa.schema(
        [
            *not_null(pa.int32(), "removed_range_delete_files_count", "added_range_delete_files_count"),
            *not_null(pa.int64(), "removed_spans_count", "added_spans_count"),
            ("snapshot_id", pa.int64()),
        ]
    ),
)
def merge_range_deletes(table: Table, *, dry_run: bool = False) -> Rows:
    """Merge range delete files into one for each scope and list of columns. Each span keeps its sequence number."""
    return [result_fields(table.maintenance.merge_range_deletes(dry_run=dry_run))]


@procedure(
    Parameter("options", STRING_MAP, "min-input-files (2) and rewrite-all (false)."),
    Parameter("where", "string", "Only deletes of data files that may contain matching rows.", role="condition"),
    DRY_RUN,
    columns=pa.schema(
        [
            *not_null(pa.int32(), "rewritten_delete_files_count", "added_delete_files_count"),
            *not_null(pa.int64(), "rewritten_bytes_count", "added_bytes_count"),
        ]
    ),
    more_columns=(_SNAPSHOT_ID,),
)
def rewrite_position_delete_files(
    table: Table,
    *,
    options: Mapping[str, str] | None = None,
    where: Sequence[Part] | None = None,
    dry_run: bool = False,
) -> Rows:
    """Merge the position deletes of each data file into one file, on v3 tables into its deletion vector. Deletes that
    no longer match a row are removed."""
    keywords = _POSITION_OPTIONS.read(options or {})
    chosen = file_condition(where, table)
    result = table.maintenance.rewrite_position_delete_files(
        where=chosen.where, only_paths=chosen.only_paths, dry_run=dry_run, **keywords
    )
    row = {"rewritten_bytes_count": result.rewritten_bytes, "added_bytes_count": result.added_bytes}
    return [result_fields(result) | row]


@procedure(
    Parameter("use_caching", "boolean", "Accepted as a hint of Iceberg, without effect."),
    Parameter("spec_id", "integer", "Only manifests of this partition spec; the table's current one by default."),
    Parameter("sort_by", array_of("string"), "Partition fields to sort by first; all fields by default."),
    DRY_RUN,
    columns=pa.schema(not_null(pa.int32(), "rewritten_manifests_count", "added_manifests_count")),
    more_columns=(_SNAPSHOT_ID,),
)
def rewrite_manifests(
    table: Table,
    *,
    use_caching: bool = False,  # noqa: ARG001  a hint
    spec_id: int | None = None,
    sort_by: list[str] | None = None,
    dry_run: bool = False,
) -> Rows:
    """Group the entries of the branch's manifests by partition."""
    result = table.maintenance.rewrite_manifests(
        dry_run=dry_run,
        spec_id=table.metadata.default_spec_id if spec_id is None else spec_id,
        sort_by=sort_by,
    )
    return [result_fields(result)]


def _order(table: Table, strategy: str | None, sort_order: str | None) -> dict[str, Any]:
    """PR-9: the arguments of compaction for `strategy` and `sort_order`."""
    if strategy is not None and strategy.lower() not in {"binpack", "sort"}:
        raise InvalidArgumentError(f"strategy must be 'binpack' or 'sort', not {strategy!r}.")
    if sort_order is not None:
        if (strategy or "sort").lower() == "binpack":
            raise InvalidArgumentError("sort_order requires the strategy 'sort', not 'binpack'.")
        return parsed_order(sort_order)
    if (strategy or "").lower() != "sort" or table.key:
        return {}
    order = order_of_table(table.metadata)
    if order is None:
        raise InvalidArgumentError(
            f"strategy 'sort': {table.name} has no sort order. Pass one, as in sort_order => 'a, b DESC' or "
            "'zorder(a, b)', or set the sort order of the table with ALTER TABLE ... WRITE ORDERED BY."
        )
    return {"sort_by": [text_of(each, table.metadata.schema()) for each in order.columns]}


def result_fields(result: Any) -> dict[str, Any]:
    """The fields of a result. Columns are selected from them by name."""
    return {each.name: getattr(result, each.name) for each in fields(result)}
