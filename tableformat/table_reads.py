"""`TableReads`: the reading half of a table handle, pinned to the metadata that it was loaded with.

`table.Table` has the operations that write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, overload

import pyarrow as pa
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import FileIO
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH

from tableformat import operations
from tableformat.arguments import checked_methods
from tableformat.errors import SnapshotNotFoundError, UnsupportedFeatureError
from tableformat.filters.predicate import Where
from tableformat.keys.table_key import key_field_ids, key_names
from tableformat.markup.notebook import displayed
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.identifiers import identifier_text
from tableformat.metadata.metadata_tables import history_table
from tableformat.metadata.newest import move_to_newest, newest_of
from tableformat.metadata.snapshot_choice import at_most_one, head_view, to_epoch_ms, view_as_of, view_at, view_of_tag
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.options import RowsLike

if TYPE_CHECKING:
    import pandas
    import polars

    from tableformat.changes.changes import Changes
    from tableformat.scan.scan import Scan
    from tableformat.snapshot_layers.layers import Layers


class LoadsTables(Protocol):
    """The part of a catalog that a table uses; `tableformat.Catalog` has it."""

    iceberg: IcebergCatalog
    """The PyIceberg catalog behind it."""

    def load_table(self, identifier: str | tuple[str, ...], *, branch: str = MAIN_BRANCH) -> TableReads:
        """The table with this name. Raises TableNotFoundError if it does not exist."""


@checked_methods
class TableReads:
    """An Iceberg table on one branch, pinned to the metadata that it was loaded with."""

    def __init__(self, iceberg: IcebergTable, *, catalog: LoadsTables | None = None, branch: str = MAIN_BRANCH) -> None:
        self.iceberg = iceberg
        """The PyIceberg table behind this one, at the same metadata."""
        self.catalog = catalog
        """The catalog that the table was loaded from; None if its metadata file was read directly."""
        self.branch = branch
        """Reads use this branch, and writes go to it."""
        head_view(
            iceberg.metadata, iceberg.io, branch
        )  # A branch that is not there is an error now, not at the first read.

    def __repr__(self) -> str:
        snapshot = self.view.snapshot
        at = f"snapshot {snapshot.snapshot_id}" if snapshot else "no snapshot"
        return f"Table({self.name!r}, branch={self.branch!r}, {at})"

    def __reduce__(self) -> tuple[object, ...]:
        """The handle with its metadata. The other process opens the catalog again."""
        iceberg = self.iceberg
        if self.catalog is None and not isinstance(iceberg.catalog, NoopCatalog):
            raise UnsupportedFeatureError(
                f"the handle of {self.name} cannot be pickled: it was not loaded through a catalog from "
                "open_catalog(). Load the table in the other process instead."
            )
        parts = (iceberg.name(), iceberg.metadata, iceberg.metadata_location, iceberg.io, iceberg.config)
        return _handle, (type(self), parts, self.catalog, self.branch)

    def _repr_html_(self) -> str:
        return operations.table_html(self.iceberg, self.view, self.branch)

    @property
    def name(self) -> str:
        """The dotted identifier."""
        return identifier_text(self.iceberg.name())

    @property
    def metadata(self) -> TableMetadata:
        return self.iceberg.metadata

    @property
    def location(self) -> str:
        return self.iceberg.location()

    @property
    def properties(self) -> dict[str, str]:
        return dict(self.metadata.properties)

    @property
    def checks(self) -> dict[str, str]:
        """The CHECK constraints: names and conditions in Spark's SQL.

        >>> table.checks
        {}
        """
        from tableformat.write.rows.checks import check_conditions

        return check_conditions(self.metadata.properties)

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema; `iceberg.schema()` has field ids."""
        return displayed(arrow_schema(self.metadata.schema()))

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the key columns, most significant first; empty for a table without a key."""
        schema = self.metadata.schema()
        return key_names(schema, key_field_ids(schema, self.metadata.properties))

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that this handle reads; None for a table without snapshots."""
        snapshot = self.view.snapshot
        return snapshot.snapshot_id if snapshot else None

    @property
    def view(self) -> SnapshotView:
        """The pinned snapshot, in the form that scans and jobs take."""
        return head_view(self.iceberg.metadata, self.iceberg.io, self.branch)

    def refresh(self) -> Self:
        """Move this handle to the newest metadata in the catalog.

        >>> other = catalog.load_table("db.calendars")
        >>> result = other.delete_prefix({"id1": "A"})
        >>> table.scan().count(), table.refresh().scan().count()
        (3, 1)
        """
        move_to_newest(self.iceberg)
        return self

    # -- reading ------------------------------------------------------------------------------------------------------

    def scan(
        self,
        where: Where | None = None,
        columns: Sequence[str] | None = None,
        *,
        snapshot_id: int | None = None,
        as_of: datetime | str | int | None = None,
        tag: str | None = None,
        branch: str | None = None,
        limit: int | None = None,
    ) -> Scan:
        """Rows that match `where`, with all deletes applied. `where` is SQL text, or an expression of PyIceberg,
        pyarrow.compute or Polars.

        The rows are read from the snapshot of this handle, unless one of `snapshot_id`, `as_of`, `tag` and `branch`
        chooses another one. A time without a time zone in `as_of` is UTC.

        >>> table.scan(where="id2 >= 3", columns=["id1", "num_cal"]).to_arrow().to_pydict()
        {'id1': ['A', 'A'], 'num_cal': [1, 2]}
        >>> loaded = table.snapshot_id
        >>> result = table.delete_prefix({"id1": "A"})
        >>> table.scan().count(), table.scan(snapshot_id=loaded).count()
        (1, 3)
        """
        from tableformat.scan.scan import Scan
        from tableformat.scan.scan_report import ReportedTable

        view = self.at(snapshot_id=snapshot_id, as_of=as_of, tag=tag, branch=branch)
        return Scan(view, where, columns, limit=limit, table=ReportedTable(self.name, self.iceberg.catalog))

    def head(self, n: int = 10, columns: Sequence[str] | None = None) -> pa.Table:
        """The first `n` rows that a scan returns, in no particular order.

        >>> table.head(1)["id1"].to_pylist()
        ['A']
        """
        return displayed(self.scan(columns=columns, limit=n).to_arrow())

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """All rows as pandas; `scan(...).to_pandas()` reads a part of them.

        >>> table.to_pandas()["num_cal"].sum().item()
        4
        """
        return self.scan().to_pandas(**options)

    @overload
    def to_polars(self) -> polars.DataFrame: ...
    @overload
    def to_polars(self, *, lazy: Literal[False]) -> polars.DataFrame: ...
    @overload
    def to_polars(self, *, lazy: Literal[True]) -> polars.LazyFrame: ...
    def to_polars(self, *, lazy: bool = False) -> polars.DataFrame | polars.LazyFrame:
        """All rows as Polars. A lazy frame reads only the columns and rows that its query needs.

        >>> import polars as pl
        >>> table.to_polars(lazy=True).filter(pl.col("id1") == "A").select("num_cal").collect()["num_cal"].to_list()
        [1, 2]
        """
        return self.scan().to_polars(lazy=True) if lazy else self.scan().to_polars()

    def __len__(self) -> int:
        """The number of rows. Metadata is enough if no deletes are pending."""
        return self.scan().count()

    def __bool__(self) -> bool:
        """True, even if the table has no rows."""
        return True

    def get(self, key: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any] | None:
        """The row with the key, or None. Raises DuplicateKeyError if several rows have it.

        `key` has a value for each key column: a tuple in key order, or a mapping of names to values. Statistics choose
        the files and row groups to read.

        >>> table.get(("A", 3, 2))
        {'id1': 'A', 'id2': 3, 'num_cal': 2, 'open_on': None}
        >>> print(table.get({"id1": "A", "id2": 3, "num_cal": 9}))
        None
        """
        return operations.row_of_key(self.view, key)

    def get_many(self, keys: RowsLike) -> pa.Table:
        """The rows with the given keys, in the order of `keys`, an Arrow table of the key columns. Keys without a row
        are left out. If a key is given twice, or several rows have it, all combinations are returned.

        >>> keys = pa.table({"id1": ["B", "X", "A"], "id2": [1, 1, 3], "num_cal": [1, 1, 1]})
        >>> table.get_many(keys)["id1"].to_pylist()
        ['B', 'A']
        """
        return operations.rows_of_keys(self.view, keys)

    def at(
        self,
        *,
        snapshot_id: int | None = None,
        as_of: datetime | str | int | None = None,
        tag: str | None = None,
        branch: str | None = None,
    ) -> SnapshotView:
        """The snapshot that the arguments choose, by default the snapshot of this handle. If this handle does not know
        the snapshot, the newest metadata is read.

        >>> tagged = table.create_tag("loaded").snapshot_id
        >>> result = table.delete_prefix({"id1": "A"})
        >>> table.at(tag="loaded").snapshot.snapshot_id == tagged
        True
        """
        at_most_one(snapshot_id=snapshot_id, as_of=as_of, tag=tag, branch=branch)
        chosen = {"snapshot_id": snapshot_id, "as_of": as_of, "tag": tag, "branch": branch}
        try:
            return self._view_in(self.iceberg, **chosen)
        except SnapshotNotFoundError:
            # The snapshot may be newer than this handle.
            newest = self.iceberg if self.catalog is None else newest_of(self.iceberg)
            if newest.metadata_location == self.iceberg.metadata_location:
                raise
            return self._view_in(newest, **chosen)

    def _view_in(self, iceberg: IcebergTable, *, snapshot_id: Any, as_of: Any, tag: Any, branch: Any) -> SnapshotView:
        metadata, io = iceberg.metadata, iceberg.io
        if snapshot_id is not None:
            return view_at(metadata, io, snapshot_id)
        if as_of is not None:
            return view_as_of(metadata, io, as_of, self.branch)
        if tag is not None:
            return view_of_tag(metadata, io, tag)
        if branch is not None:
            return head_view(metadata, io, branch)
        return head_view(metadata, io, self.branch)

    def layers(
        self,
        column: str | None = None,
        *,
        to_scale: bool = True,
        snapshot_id: int | None = None,
        as_of: datetime | str | int | None = None,
        tag: str | None = None,
        branch: str | None = None,
    ) -> Layers:
        """A picture of the files of a snapshot, made from metadata alone: the values of a column from left to right,
        sequence numbers from bottom to top.

        `column` is by default the first range column, or the first key column. `to_scale=False` draws the values at
        equal distances. Range partitions are shown as a ruler. Notebooks display the picture; `print` writes it as
        text.

        >>> result = table.delete_prefix({"id1": "B"})
        >>> print(table.layers().text(width=60).splitlines()[1])
        #2 range                                                   ─
        """
        from tableformat.snapshot_layers.layers import layers_of

        view = self.at(snapshot_id=snapshot_id, as_of=as_of, tag=tag, branch=branch)
        return layers_of(view, self.name, branch or self.branch, column=column, to_scale=to_scale)

    def changes(
        self,
        where: Where | None = None,
        columns: Sequence[str] | None = None,
        *,
        from_snapshot_id: int | None = None,
        to_snapshot_id: int | None = None,
        from_timestamp: datetime | str | int | None = None,
        to_timestamp: datetime | str | int | None = None,
        consumer: str | None = None,
        limit: int | None = None,
        range_drops: str = "rows",
    ) -> Changes:
        """The rows that snapshots deleted and added, in the order in which they rebuild the table.

        The feed begins after `from_snapshot_id`, by default with the first snapshot, and ends with `to_snapshot_id`, by
        default the snapshot of this handle. A timestamp chooses the newest snapshot committed at that time or before.
        Raises SnapshotNotFoundError, which names the oldest possible beginning, if a needed snapshot has expired, and
        InvalidArgumentError if the first snapshot is not an ancestor of the last.

        `consumer`: begin after the position of this consumer, see `consumers`. The feed does not advance it; call
        `consumers.advance(name, feed.to_snapshot_id)` after its rows are stored. Raises ConsumerNotFoundError for an
        unknown name.

        `range_drops` chooses how dropped range partitions appear. "rows": their rows are deletes. "skip": their rows
        are left out, for a consumer that keeps rows longer than the table. "event": `Changes.range_events()` has one
        row for each range.

        >>> loaded = table.snapshot_id
        >>> result = table.delete_prefix({"id1": "B"})
        >>> table.changes(from_snapshot_id=loaded, columns=["_change_type", "id1", "id2"]).to_arrow().to_pylist()
        [{'_change_type': 'delete', 'id1': 'B', 'id2': 1}]
        """
        from tableformat.changes.changes import Changes
        from tableformat.changes.range import change_range_of_times

        at_most_one(from_snapshot_id=from_snapshot_id, from_timestamp=from_timestamp, consumer=consumer)
        if consumer is not None:
            from_snapshot_id = operations.consumer_of(self.metadata, consumer).snapshot_id
        at_most_one(to_snapshot_id=to_snapshot_id, to_timestamp=to_timestamp)
        changes = change_range_of_times(
            self.at(snapshot_id=to_snapshot_id),
            from_snapshot_id=from_snapshot_id,
            from_ms=None if from_timestamp is None else to_epoch_ms(from_timestamp, "from_timestamp"),
            to_ms=None if to_timestamp is None else to_epoch_ms(to_timestamp, "to_timestamp"),
        )
        return Changes(changes, where, columns, limit, range_drops)

    @property
    def consumers(self) -> operations.TableConsumers:
        """Named readers of the change feed. Expiry keeps the snapshots that they have not read yet.

        >>> table.consumers.advance("mart").snapshot_id == table.snapshot_id
        True
        """
        return operations.TableConsumers(self.iceberg, self.branch)

    def history(self) -> pa.Table:
        """When each snapshot became current: `made_current_at`, `snapshot_id`, `parent_id`, `is_current_ancestor`.

        >>> result = table.delete_prefix({"id1": "B"})
        >>> first, second = table.history()["snapshot_id"].to_pylist()
        >>> table.scan(snapshot_id=first).count(), second == table.snapshot_id
        (3, True)
        """
        return displayed(history_table(self.metadata, self.branch))

    @property
    def inspect(self) -> operations.Inspect:
        """Metadata tables in Arrow with Iceberg's columns.

        >>> result = table.delete_prefix({"id1": "B"})
        >>> table.inspect.delete_files().select(["kind", "record_count"]).to_pylist()
        [{'kind': 'range', 'record_count': 1}]
        """
        return operations.Inspect(self.view, self.branch, self.iceberg.metadata_location)


def _handle(
    kind: type[TableReads],
    parts: tuple[tuple[str, ...], TableMetadata, str, FileIO, dict[str, str]],
    catalog: LoadsTables | None,
    branch: str,
) -> TableReads:
    """Restore a pickled handle."""
    identifier, metadata, metadata_location, io, config = parts
    backend = NoopCatalog("pickled") if catalog is None else catalog.iceberg
    iceberg = IcebergTable(identifier, metadata, metadata_location, io, backend, config)
    return kind(iceberg, catalog=catalog, branch=branch)
