"""Metadata of a table as Arrow tables, with the columns of Iceberg's metadata tables."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tableformat.arguments import checked_methods
from tableformat.errors import InvalidArgumentError, nearest_hint
from tableformat.markup.notebook import displayed_methods
from tableformat.merge_on_read.applicable_deletes import ApplicableDeletes
from tableformat.metadata import all_snapshots
from tableformat.metadata import metadata_tables as inspect
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.position_delete_rows import position_deletes_table
from tableformat.range_partitions.history import range_partition_history
from tableformat.range_partitions.listing import partition_list
from tableformat.range_partitions.past import partitions_listed_at


@checked_methods
@displayed_methods
@dataclass(frozen=True, slots=True, repr=False)
class Inspect:
    """The metadata tables of one snapshot.

    >>> result = table.create_tag("loaded").delete_prefix({"id1": "B"})
    >>> table.inspect.refs().select(["name", "type"]).sort_by("name").to_pylist()
    [{'name': 'loaded', 'type': 'TAG'}, {'name': 'main', 'type': 'BRANCH'}]
    >>> table.inspect.snapshots()["operation"].to_pylist()
    ['append', 'delete']
    """

    view: SnapshotView
    branch: str
    metadata_location: str
    """The metadata file from which the metadata of the view was read."""
    has_readable_metrics: bool = True
    """Whether files and entries have readable metrics. They cost a step for each column of each file."""

    def __repr__(self) -> str:
        return f"Inspect({self.view!r}, branch={self.branch!r})"

    def files(self) -> pa.Table:
        """Live data files and delete files: `content`, `file_path`, `record_count`, ..."""
        return inspect.files_table(self.view, readable=self.has_readable_metrics)

    def data_files(self) -> pa.Table:
        """Live data files."""
        return inspect.data_files_table(self.view, readable=self.has_readable_metrics)

    def delete_files(self) -> pa.Table:
        """Live delete files. The column `kind` distinguishes position, equality and range deletes and deletion
        vectors."""
        return inspect.delete_files_table(self.view, readable=self.has_readable_metrics)

    def snapshots(self) -> pa.Table:
        """Every retained snapshot of the table: `committed_at`, `snapshot_id`, `operation`, `summary`, ..."""
        return inspect.snapshots_table(self.view.metadata)

    def history(self) -> pa.Table:
        """The times at which the snapshots of the branch became current."""
        return inspect.history_table(self.view.metadata, self.branch)

    def manifests(self) -> pa.Table:
        """The manifests of the snapshot."""
        return inspect.manifests_table(self.view)

    def entries(self) -> pa.Table:
        """The entries of the snapshot's manifests, including deleted ones."""
        return inspect.entries_table(self.view, readable=self.has_readable_metrics)

    def all_files(self) -> pa.Table:
        """Files of every retained snapshot, once for each manifest that lists them; same columns as `files`."""
        return all_snapshots.all_files_table(self.view, readable=self.has_readable_metrics)

    def all_data_files(self) -> pa.Table:
        """Data files of every retained snapshot."""
        return all_snapshots.all_data_files_table(self.view, readable=self.has_readable_metrics)

    def all_delete_files(self) -> pa.Table:
        """Delete files of every retained snapshot."""
        return all_snapshots.all_delete_files_table(self.view, readable=self.has_readable_metrics)

    def all_entries(self) -> pa.Table:
        """The entries of the manifests of every retained snapshot."""
        return all_snapshots.all_entries_table(self.view, readable=self.has_readable_metrics)

    def all_manifests(self) -> pa.Table:
        """The manifests of every retained snapshot, with its id in `reference_snapshot_id`."""
        return all_snapshots.all_manifests_table(self.view)

    def metadata_log_entries(self) -> pa.Table:
        """The retained metadata files of the table, with the current one last.

        >>> table.inspect.metadata_log_entries()["latest_sequence_number"].to_pylist()
        [None, 1]
        """
        return inspect.metadata_log_table(self.view.metadata, self.metadata_location)

    def position_deletes(self) -> pa.Table:
        """The rows deleted by position delete files and deletion vectors: `file_path`, `pos`, and the delete file.

        >>> result = table.delete("num_cal = 2", mode="scan")
        >>> table.inspect.position_deletes()["pos"].to_pylist()
        [1]
        """
        return position_deletes_table(self.view)

    def partitions(self) -> pa.Table:
        """Rows, files and deletes of each partition."""
        return inspect.partitions_table(self.view)

    def range_partitions(self) -> pa.Table:
        """The range partitions of the table at the snapshot, including empty ones, with their contents.

        Raises InvalidArgumentError for a table without range partitions.
        """
        return partition_list(self.view, partitions_listed_at(self.view, self.branch))

    def range_partition_history(self) -> pa.Table:
        """The changes of the range partitions, oldest first, as far back as the metadata log goes: `changed_at`,
        `snapshot_id` (null for a commit without a snapshot), `change`, `partition`, `border` and `tag`.

        >>> table.inspect.range_partition_history().num_rows
        0
        """
        return range_partition_history(self.view.metadata, self.view.io)

    def refs(self) -> pa.Table:
        """Branches and tags."""
        return inspect.refs_table(self.view.metadata)

    def deletes_of(self, path: str) -> pa.Table:
        """The delete files that may delete rows of one data file, with the columns of `delete_files`. `Scan.explain()`
        shows the reasons.

        `path` is a value from `files`. Raises InvalidArgumentError if it is not a live data file of the snapshot.

        >>> result = table.delete_prefix({"id1": "A"})
        >>> path = table.inspect.data_files()["file_path"][0].as_py()
        >>> table.inspect.deletes_of(path)["kind"].to_pylist()
        ['range']
        """
        live = [
            entry.file
            for manifest in manifests_of(self.view)
            for entry in live_entries(read_manifest(self.view.io, manifest, self.view.metadata))
        ]
        data = {file.file_path: file for file in live if isinstance(file, DataFile)}
        if path not in data:
            raise InvalidArgumentError(f"{path!r} is not a data file of this snapshot.{nearest_hint(path, data)}")
        deletes = [file for file in live if isinstance(file, DeleteFile)]
        return inspect.content_files_table(
            self.view.metadata, ApplicableDeletes(self.view.metadata, deletes).of(data[path])
        )
