"""`rewrite_table_path`: the metadata of a copy of the table at another location. The caller copies the files there."""

from __future__ import annotations

import pyarrow as pa

from spark_ext.service.procedures.procedure import Parameter, Rows, procedure
from tableformat.relocation.stage_copy import stage_copy
from tableformat.table import Table


@procedure(
    Parameter("source_prefix", "string", "The directory or prefix that contains the table.", is_required=True),
    Parameter("target_prefix", "string", "The prefix that replaces it.", is_required=True),
    Parameter("start_version", "string", "Name or location of the newest metadata file that is already copied."),
    Parameter("end_version", "string", "Name or location of the metadata file to copy; the current one by default."),
    Parameter(
        "staging_location",
        "string",
        "Where to write the files; by default a new directory in the table's metadata directory.",
    ),
    Parameter("create_file_list", "boolean", "Whether to list the source and target of each file; true by default."),
    columns=pa.schema(
        [
            ("latest_version", pa.string()),
            ("file_list_location", pa.string()),
            ("rewritten_manifest_file_paths_count", pa.int32()),
            ("rewritten_delete_file_paths_count", pa.int32()),
        ]
    ),
    changes_table=False,
    on_branch=False,
)
def rewrite_table_path(
    table: Table,
    *,
    source_prefix: str,
    target_prefix: str,
    start_version: str | None = None,
    end_version: str | None = None,
    staging_location: str | None = None,
    create_file_list: bool = True,
) -> Rows:
    """Write the table's metadata for a copy at another location, and a list of all files with their new locations. No
    file is copied."""
    staged = stage_copy(
        table.iceberg,
        source_prefix=source_prefix,
        target_prefix=target_prefix,
        start_version=start_version,
        end_version=end_version,
        staging_location=staging_location,
        create_file_list=create_file_list,
    )
    return [
        {
            "latest_version": staged.latest_version,
            "file_list_location": staged.file_list_location or "N/A",
            "rewritten_manifest_file_paths_count": staged.manifest_count,
            "rewritten_delete_file_paths_count": staged.row_deletes_count,
        }
    ]
