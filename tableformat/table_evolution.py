"""`TableEvolution`: changes of a table that change no row: current snapshot, references, schema, key, properties.

`table.Table` has the operations that change rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Self

from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.table.update.spec import UpdateSpec

from tableformat import operations
from tableformat.arguments import checked_methods
from tableformat.filters.predicate import Where
from tableformat.metadata.arrow_schema import TableSchema, iceberg_schema
from tableformat.metadata.own_handle import own_handle
from tableformat.metadata.snapshot_choice import exactly_one
from tableformat.operations.format_version import FORMAT_VERSION
from tableformat.table_reads import TableReads


@checked_methods
class TableEvolution(TableReads):
    """A table whose snapshots, references, schema and properties can be changed."""

    def rollback(
        self, *, snapshot_id: int | None = None, as_of: datetime | str | int | None = None, replay: bool = False
    ) -> Self:
        """Make an ancestor of the current snapshot current again.

        `replay=True` also forgets the named batches of the snapshots that are rolled back, so that their writers can
        commit them again.

        >>> loaded = table.snapshot_id
        >>> result = table.delete_prefix({"id1": "A"})
        >>> table.rollback(snapshot_id=loaded).scan().count()
        3
        """
        exactly_one(snapshot_id=snapshot_id, as_of=as_of)
        with own_handle(self.iceberg) as own:
            operations.references.rollback(
                own, self.branch, self.at(snapshot_id=snapshot_id, as_of=as_of), replay=replay
            )
        return self

    def set_current_snapshot(self, snapshot_id: int | None = None, *, ref_name: str | None = None) -> Self:
        """Make a snapshot current, given by id or as the snapshot of a branch or tag. Unlike `rollback`, it need not be
        an ancestor.

        >>> loaded = table.snapshot_id
        >>> deleted = table.delete_prefix({"id1": "A"}).snapshot_id
        >>> table.set_current_snapshot(loaded).scan().count(), table.set_current_snapshot(deleted).scan().count()
        (3, 1)
        """
        exactly_one(snapshot_id=snapshot_id, ref_name=ref_name)
        target = (
            self.at(snapshot_id=snapshot_id)
            if ref_name is None
            else operations.references.ref_view(self.iceberg, ref_name)
        )
        with own_handle(self.iceberg) as own:
            operations.references.set_current_snapshot(own, self.branch, target)
        return self

    def fast_forward(self, branch: str, to: str) -> Self:
        """Move `branch` forward to the snapshot of the branch or tag `to`. The current snapshot of `branch` has to be
        its ancestor.

        The branch is created if it does not exist. For a publish target, use `maintenance.publish`.

        >>> result = table.create_branch("audited").delete_prefix({"id1": "A"})
        >>> table.fast_forward("audited", to="main").scan(branch="audited").count()
        1
        """
        with own_handle(self.iceberg) as own:
            operations.references.fast_forward(own, branch, to)
        return self

    def create_tag(self, name: str, snapshot_id: int | None = None, *, max_ref_age_ms: int | None = None) -> Self:
        """Give a snapshot a name, so that it is kept. The default is the snapshot of this handle.

        >>> result = table.create_tag("loaded").delete_prefix({"id1": "A"})
        >>> table.scan(tag="loaded").count()
        3
        """
        with own_handle(self.iceberg) as own:
            operations.references.create_tag(own, name, self.at(snapshot_id=snapshot_id), max_ref_age_ms)
        return self

    def create_branch(self, name: str, snapshot_id: int | None = None) -> Self:
        """Create a branch at a snapshot, by default the snapshot of this handle. `catalog.load_table(..., branch=name)`
        opens it.

        If `main` has no snapshot, the branch begins with an empty one that `main` does not get.

        >>> table = table.create_branch("ingest")
        >>> result = catalog.load_table("db.calendars", branch="ingest").delete_prefix({"id1": "A"})
        >>> table.refresh().scan().count(), table.scan(branch="ingest").count()
        (3, 1)
        """
        with own_handle(self.iceberg) as own:
            if snapshot_id is None and self.view.snapshot is None:
                operations.create_empty_branch(own, name, operations.references.RefRetention())
            else:
                operations.references.create_branch(own, name, self.at(snapshot_id=snapshot_id))
        return self

    def drop_tag(self, name: str) -> Self:
        """Remove a tag. Its snapshot can expire if no other reference keeps it.

        >>> table = table.create_tag("loaded")
        >>> table.drop_tag("loaded").inspect.refs()["name"].to_pylist()
        ['main']
        """
        with own_handle(self.iceberg) as own:
            operations.references.drop(own, name, "tag")
        return self

    def drop_branch(self, name: str) -> Self:
        """Remove a branch. Its snapshots can expire if no other reference keeps them.

        >>> table = table.create_branch("ingest")
        >>> table.drop_branch("ingest").inspect.refs()["name"].to_pylist()
        ['main']
        """
        with own_handle(self.iceberg) as own:
            operations.references.drop(own, name, "branch")
        return self

    def update_schema(self) -> UpdateSchema:
        """Add, drop, rename, reorder and widen columns. Returns PyIceberg's builder, a context manager that commits at
        its end.

        Raises InvalidArgumentError for changes that PyIceberg rejects, for dropping a column of the key or of a
        partition field, and for identifier fields; use `set_key` instead.

        >>> with table.update_schema() as update:
        ...     update = update.rename_column("open_on", "opens_on")
        >>> table.schema.names
        ['id1', 'id2', 'num_cal', 'opens_on']
        """
        return operations.SchemaChanges(self.iceberg)

    def merge_schema(self, schema: TableSchema) -> Self:
        """Add the columns of `schema`, such as those of new rows, that the table lacks, and widen types.

        New columns are optional and come last, also in structs. `int` becomes `long`, `float` becomes `double`, and
        decimals get a greater precision. No column is dropped, renamed or made optional. If nothing is missing, nothing
        is committed.

        >>> table.merge_schema(pa.schema([("id1", pa.string()), ("note", pa.string())])).schema.names
        ['id1', 'id2', 'num_cal', 'open_on', 'note']
        """
        given = iceberg_schema(schema, format_version=self.refresh().metadata.format_version)
        with self.update_schema() as update:
            operations.merge_columns(update, self.metadata.schema().as_struct(), given.as_struct())
        return self

    def update_spec(self) -> UpdateSpec:
        """Change the partitioning of rows that will be written. Returns PyIceberg's builder, a context manager.

        Raises InvalidArgumentError for changes that PyIceberg rejects.

        >>> from pyiceberg.transforms import IdentityTransform
        >>> with table.update_spec() as update:
        ...     update = update.add_field("id1", IdentityTransform(), "id1")
        >>> result = table.append(pa.table({"id1": ["C", "D"], "id2": [7, 7], "num_cal": [1, 1]}))
        >>> result.added_data_files_count
        2
        """
        return operations.SpecChanges(self.iceberg)

    def set_key(self, columns: Sequence[str]) -> Self:
        """Set the key columns, most significant first. They have to be required.

        >>> required = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
        >>> catalog.create_table("db.names", required).set_key(["id"]).key
        ('id',)
        """
        with own_handle(self.iceberg) as own:
            operations.set_key(own, columns)
        return self

    def set_properties(self, properties: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Set table properties in one commit, given as a mapping or as keywords.

        `{"format-version": "3"}` upgrades the table, as in Spark's TBLPROPERTIES. It is not stored as a property.

        >>> name = "write.target-file-size-bytes"
        >>> table.set_properties({name: "134217728"}).properties[name]
        '134217728'
        """
        with own_handle(self.iceberg) as own:
            operations.references.set_properties(own, {**(properties or {}), **more})
        return self

    def remove_properties(self, *names: str) -> Self:
        """Remove table properties in one commit.

        >>> table = table.set_properties(owner="calendar team")
        >>> table.remove_properties("owner").properties.get("owner", "nobody")
        'nobody'
        """
        with own_handle(self.iceberg) as own:
            operations.references.remove_properties(own, names)
        return self

    def add_check(self, name: str, condition: Where) -> Self:
        """Add a CHECK constraint. This library and Spark reject rows for which the condition is false. A condition that
        is null rejects nothing. Existing rows of all branches are checked first.

        `condition` is a filter like `where`. Raises InvalidArgumentError if existing rows break it or if it is always
        true, AlreadyExistsError if the name is in use, CommitConflictError if rows were added in the meantime.

        >>> table.add_check("positive", "num_cal > 0").checks
        {'positive': '`num_cal` > 0'}
        >>> result = table.append(pa.table({"id1": ["C"], "id2": [7], "num_cal": [0]}), on_refused="divert")
        >>> result.added_row_count, result.refused["num_cal"].to_pylist()
        (0, [0])
        """
        with own_handle(self.iceberg) as own:
            operations.add_check(own, name, condition)
        return self

    def drop_check(self, name: str) -> Self:
        """Remove a CHECK constraint. Raises InvalidArgumentError, which lists the constraints, if it does not exist.

        >>> table.add_check("positive", "num_cal > 0").drop_check("positive").checks
        {}
        """
        with own_handle(self.iceberg) as own:
            operations.drop_check(own, name)
        return self

    def upgrade(self, format_version: int = 3) -> Self:
        """Upgrade the table to a newer format version, in a metadata-only commit. It cannot be undone.

        With version 3, rows get ids in the next snapshot (row lineage), and deletes are written as deletion vectors.
        Existing position deletes stay valid. Raises UnsupportedFeatureError if the catalog does not support the
        version.

        >>> table.upgrade().metadata.format_version
        3
        """
        return self.set_properties({FORMAT_VERSION: str(format_version)})
