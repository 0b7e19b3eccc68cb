"""`TableRangePartitions`: lists and changes the range partitions of a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
from pyiceberg.table import Table as IcebergTable

from tableformat.arguments import checked_methods
from tableformat.commit.read_only import refuse_read_only
from tableformat.metadata.newest import move_to_newest
from tableformat.metadata.own_handle import calls_on_own_handles
from tableformat.metadata.snapshot_choice import at_most_one, head_view, view_as_of, view_at, view_of_tag
from tableformat.operations.ranges.alter import Altered, alter, committed, defined_partitions
from tableformat.operations.ranges.define import define_partitions
from tableformat.operations.ranges.result import RangePartitionsResult
from tableformat.operations.ranges.retire import PlannedRetirement, new_retired_tag, restore
from tableformat.operations.ranges.window import advanced
from tableformat.range_partitions.alteration import added, check_whole_partitions, divided, dropped, merged
from tableformat.range_partitions.cuts import cut_at
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.definition import range_of
from tableformat.range_partitions.history import range_partition_history
from tableformat.range_partitions.listing import partition_list
from tableformat.range_partitions.model import Bound, BoundLike, RangePartitions, Values, bound
from tableformat.range_partitions.past import partitions_listed_at
from tableformat.range_partitions.window import now_of


@checked_methods
@calls_on_own_handles("_iceberg")
class TableRangePartitions:
    """The range partitions of a table, as returned by `Table.range_partitions`. Rows are dropped on the branch of the
    handle; the ranges themselves belong to the whole table.

    The later examples use this table:

    >>> years = tf.RangePartitions(on=["year"], bounds=[(2020, 2024)], step=1)
    >>> columns = pa.schema([("year", pa.int32()), ("id", pa.int64())])
    >>> sales = catalog.create_table("db.sales", columns, key=["year", "id"], range_partitions=years)
    >>> sales.append(pa.table({"year": [2020, 2021, 2021], "id": [1, 2, 3]})).added_row_count
    3
    """

    def __init__(self, iceberg: IcebergTable, branch: str) -> None:
        self._iceberg = iceberg
        self._branch = branch

    def __repr__(self) -> str:
        defined = self._defined()
        return f"range partitions of {'.'.join(self._iceberg.name())}: {', '.join(map(defined.text, defined.bounds))}"

    @property
    def on(self) -> tuple[str, ...]:
        """The range columns, most significant first."""
        return self._defined().key.names

    def list(
        self,
        *,
        snapshot_id: int | None = None,
        as_of: datetime | str | int | None = None,
        tag: str | None = None,
    ) -> pa.Table:
        """The partitions in order, including empty ones, with their contents. Reads only metadata.

        If other writers added rows outside all partitions, the last row is for them. A retired range has the state
        "retired", its `tag` and `retired_at`, until it is restored or its tag is removed.

        For an earlier snapshot, the list has the partitions of that time.

        >>> sales = catalog.load_table("db.sales")
        >>> sales.range_partitions.list().select(["partition", "state", "record_count"]).to_pylist()[:2]
        [{'partition': '[2020, 2021)', 'state': 'live', 'record_count': 1}, \
{'partition': '[2021, 2022)', 'state': 'live', 'record_count': 2}]
        """
        at_most_one(snapshot_id=snapshot_id, as_of=as_of, tag=tag)
        metadata, io = self._iceberg.metadata, self._iceberg.io
        if snapshot_id is not None:
            view = view_at(metadata, io, snapshot_id)
        elif as_of is not None:
            view = view_as_of(metadata, io, as_of, self._branch)
        elif tag is not None:
            view = view_of_tag(metadata, io, tag)
        else:
            return partition_list(head_view(metadata, io, self._branch), self._defined())
        return partition_list(view, partitions_listed_at(view, self._branch))

    def history(self) -> pa.Table:
        """The changes of the ranges, oldest first: `changed_at`, `snapshot_id` (null for a commit without a snapshot),
        `change`, `partition`, `border` (of a split or a merge) and `tag`.

        The history goes back as far as the metadata log of the table. For earlier changes, it has the drops,
        retirements and restorations that retained snapshots record, but not the additions.

        >>> result = sales.range_partitions.add(2024, 2025)
        >>> sales.range_partitions.history().select(["change", "partition", "snapshot_id"]).to_pylist()[-1]
        {'change': 'added', 'partition': '[2024, 2025)', 'snapshot_id': None}
        """
        return range_partition_history(self._iceberg.metadata, self._iceberg.io)

    def define(self, given: RangePartitions, *, dry_run: bool = False) -> RangePartitionsResult:
        """Define range partitions for a table that has none, in one commit. Existing rows outside the ranges stay and
        are read; `uncovered_data_files_count` and `list()` report them. The partition spec does not change.

        >>> events = catalog.create_table("db.events", columns, key=["year", "id"])
        >>> events.append(pa.table({"year": [1999, 2020], "id": [1, 2]})).added_row_count
        2
        >>> result = events.range_partitions.define(tf.RangePartitions(on=["year"], bounds=[(2020, 2024)], step=1))
        >>> result.added, result.uncovered_data_files_count, events.scan().count()
        (('[2020, 2024)',), 1, 2)
        """
        return define_partitions(self._iceberg, self._branch, given, dry_run=dry_run)

    def alter(
        self,
        *,
        add: Sequence[BoundLike] = (),
        drop: Sequence[BoundLike] = (),
        split: Sequence[Values] = (),
        merge: Sequence[BoundLike] = (),
        metadata_only: bool = False,
        dry_run: bool = False,
    ) -> RangePartitionsResult:
        """Make any number of changes in one commit: first ranges are dropped, then others are added, merged and split.

        A drop removes whole files without opening them. Rows in files that also have other rows are deleted by one
        range delete, which `metadata_only=True` refuses. Raises InvalidArgumentError for an impossible change; nothing
        is changed then.

        >>> result = sales.range_partitions.alter(add=[(2024, 2025)], drop=[(2020, 2021)])
        >>> result.dropped, result.removed_data_files_count, sales.scan().count()
        (('[2020, 2021)',), 1, 2)
        """
        verb = partial(_altered, add=tuple(add), drop=tuple(drop), split=tuple(split), merge=tuple(merge))
        return alter(self._iceberg, self._branch, verb, metadata_only=metadata_only, dry_run=dry_run)

    def add(
        self, lower: Values, upper: Values, *, lower_inclusive: bool = True, upper_inclusive: bool = False
    ) -> RangePartitionsResult:
        """Add one range, [lower, upper) by default. None means unbounded.

        >>> sales.range_partitions.add(2030, 2031).added
        ('[2030, 2031)',)
        """
        return self.alter(add=[_bound(lower, upper, lower_inclusive, upper_inclusive)])

    def drop(
        self,
        lower: Values,
        upper: Values,
        *,
        lower_inclusive: bool = True,
        upper_inclusive: bool = False,
        metadata_only: bool = False,
        dry_run: bool = False,
    ) -> RangePartitionsResult:
        """Drop whole partitions from lower to upper, with their rows. Time travel still shows them.

        >>> sales.range_partitions.drop(2021, 2023, dry_run=True).removed_row_count
        2
        >>> sales.range_partitions.drop(2021, 2023).dropped
        ('[2021, 2022)', '[2022, 2023)')
        """
        given = _bound(lower, upper, lower_inclusive, upper_inclusive)
        return self.alter(drop=[given], metadata_only=metadata_only, dry_run=dry_run)

    def split(self, at: Values) -> RangePartitionsResult:
        """Split the partition that contains the value. Files with rows on both sides stay unchanged.

        >>> halves = tf.RangePartitions(on=["id"], bounds=[(0, 100)])
        >>> ids = catalog.create_table("db.ids", pa.schema([("id", pa.int64())]), key=["id"], range_partitions=halves)
        >>> result = ids.range_partitions.split(50)
        >>> ids.range_partitions.list()["partition"].to_pylist()
        ['[0, 50)', '[50, 100)']
        """
        return self.alter(split=[at])

    def merge(self, lower: Values, upper: Values) -> RangePartitionsResult:
        """Merge several adjacent partitions into one. The borders of steps stay.

        >>> halves = tf.RangePartitions(on=["id"], bounds=[(0, 100)], splits=[50])
        >>> ids = catalog.create_table("db.ids", pa.schema([("id", pa.int64())]), key=["id"], range_partitions=halves)
        >>> result = ids.range_partitions.merge(0, 100)
        >>> ids.range_partitions.list()["partition"].to_pylist()
        ['[0, 100)']
        """
        return self.alter(merge=[(lower, upper)])

    def advance(self, now: Any = None, *, dry_run: bool = False) -> RangePartitionsResult:
        """Move the window in one commit: add the step of `now` and the next `ahead` steps, and drop partitions that end
        at or before `now` minus `retain`.

        Only whole partitions are dropped, never a protected one, and never one of the newest `keep_latest`. `now` is
        the current time by default; for a column of numbers it must be given.

        >>> years = tf.RangePartitions(on=["year"], bounds=[(2020, 2023)], step=1, retain=2, ahead=1)
        >>> columns = pa.schema([("year", pa.int32()), ("id", pa.int64())])
        >>> latest = catalog.create_table("db.latest", columns, key=["year", "id"], range_partitions=years)
        >>> result = latest.range_partitions.advance(now=2023)
        >>> result.added, result.dropped
        (('[2023, 2025)',), ('[2020, 2021)',))
        """
        moment = now_of(self._defined(), now)
        return alter(self._iceberg, self._branch, lambda defined: advanced(defined, moment), dry_run=dry_run)

    def retire(
        self,
        lower: Values,
        upper: Values,
        *,
        lower_inclusive: bool = True,
        upper_inclusive: bool = False,
        dry_run: bool = False,
    ) -> RangePartitionsResult:
        """Drop whole partitions and keep their files under a tag, `result.tag`, from which `restore` brings them back.
        Raises InvalidArgumentError if a file straddles a border.

        >>> tag = sales.range_partitions.retire(2020, 2021).tag
        >>> sales.scan().count(), sales.scan(tag=tag).count()
        (2, 3)
        """
        given = _bound(lower, upper, lower_inclusive, upper_inclusive)
        if dry_run:
            return self.alter(drop=[given], metadata_only=True, dry_run=True)
        refuse_read_only(self._iceberg)
        move_to_newest(self._iceberg)
        defined = self._defined()
        tag = new_retired_tag(self._iceberg.metadata, defined.text(range_of(defined.key, given)))
        drops = partial(_altered, add=(), drop=(given,), split=(), merge=())
        planned = PlannedRetirement(self._iceberg, self._branch, drops, tag=tag)
        return committed(self._iceberg, self._branch, planned)

    def restore(self, tag: str, *, deletes: str | None = None, dry_run: bool = False) -> RangePartitionsResult:
        """Restore the ranges that were retired under the tag, without rewriting files, and remove the tag.

        `deletes` is required if deletes that may affect the range were committed in the meantime: "apply" also deletes
        their rows from it, "ignore" restores all of its rows. Raises InvalidArgumentError without it, with the number
        of these deletes, and for "apply" if one of them recorded no condition.

        >>> tag = sales.range_partitions.retire(2020, 2021).tag
        >>> sales.range_partitions.restore(tag).restored_data_files_count, sales.scan().count()
        (1, 3)
        """
        return restore(self._iceberg, self._branch, tag, deletes=deletes, dry_run=dry_run)

    def _defined(self) -> DefinedPartitions:
        return defined_partitions(self._iceberg, head_view(self._iceberg.metadata, self._iceberg.io, self._branch))


def _bound(lower: Values, upper: Values, lower_inclusive: bool, upper_inclusive: bool) -> Bound:
    return bound(lower, upper, lower_inclusive=lower_inclusive, upper_inclusive=upper_inclusive)


def _altered(
    defined: DefinedPartitions,
    *,
    add: Sequence[BoundLike],
    drop: Sequence[BoundLike],
    split: Sequence[Any],
    merge: Sequence[BoundLike],
) -> Altered:
    """RP-8: apply all changes to the current ranges."""
    key = defined.key
    goes = [range_of(key, each) for each in drop]
    comes = [range_of(key, each) for each in add]
    partitions = tuple(partition for each in sorted(goes) for partition in check_whole_partitions(defined, each))
    after = dropped(defined, goes) if goes else defined
    after = added(after, comes) if comes else after
    after = merged(after, [range_of(key, each) for each in merge]) if merge else after
    after = divided(after, [cut_at(key, each, after=False, side="split") for each in split]) if split else after
    return Altered(after, tuple(sorted(comes)), partitions)
