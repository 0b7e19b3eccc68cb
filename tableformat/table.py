"""`Table`: all operations of the library. Each method is a few lines that delegate.

A handle is pinned to the metadata that it was loaded with. After one of its own operations it is at the snapshot of
that operation, and `refresh()` moves it to the newest one. Other handles of the same table do not move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from tableformat import operations
from tableformat.arguments import checked_methods
from tableformat.commit.metadata_commit import refresh
from tableformat.filters.predicate import Where
from tableformat.maintenance.running.progress import Progress
from tableformat.metadata.snapshot_choice import exactly_one
from tableformat.operations.merging.clauses import MergeStatement
from tableformat.operations.options import CommitKeywords, CommitOptions, RowsLike
from tableformat.range_partitions.model import BoundLike
from tableformat.table_commits import TableCommits

if TYPE_CHECKING:
    from tableformat.maintenance.erasure.certificate import ErasureCertificate
    from tableformat.maintenance.maintenance import Maintenance
    from tableformat.maintenance.verification.findings import VerifyResult
    from tableformat.operations.merging.builder import Merge
    from tableformat.operations.staging.result import CommitResult


@checked_methods
class Table(TableCommits):
    """An Iceberg table with range deletes, on one branch. Threads may share a handle: each call works on one version,
    and the handle only moves forward.

    Every operation that writes takes four more keywords, `**commit` in its signature. `application_id` and `batch_id`
    name the writer and its batch; a batch is committed once, even if the call is repeated. `snapshot_properties` are
    added to the snapshot's summary. `if_unchanged_since` is the id of a snapshot that the caller has read: if rows were
    added later to the range that the operation deletes or reads, ScopeChangedError is raised.

    The examples of this library begin with these lines:

    >>> import pyarrow as pa
    >>> import tableformat as tf
    >>> catalog = tf.open_catalog("lake/")
    >>> catalog.create_namespace("db")
    >>> columns = {"id1": pa.string(), "id2": pa.int64(), "num_cal": pa.int32(), "open_on": pa.date32()}
    >>> table = catalog.create_table("db.calendars", pa.schema(columns), key=["id1", "id2", "num_cal"])
    >>> result = table.append(pa.table({"id1": ["A", "A", "B"], "id2": [3, 3, 1], "num_cal": [1, 2, 1]}))
    >>> result.added_row_count, table.scan().count()
    (3, 3)
    """

    @property
    def maintenance(self) -> Maintenance:
        """Jobs that keep the table fast, and readable by other engines.

        >>> result = table.delete_prefix({"id1": "A"})
        >>> table.maintenance.convert_deletes().deleted_row_count
        2
        """
        from tableformat.maintenance.maintenance import Maintenance

        return Maintenance(self.iceberg, self.branch)

    @property
    def range_partitions(self) -> operations.TableRangePartitions:
        """The declared ranges of the key space, for tables that were created with `range_partitions` or got them by
        `range_partitions.define`.

        >>> years = tf.RangePartitions(on=["year"], bounds=[(2020, 2024)], step=1)
        >>> columns = pa.schema([("year", pa.int32()), ("id", pa.int64())])
        >>> sales = catalog.create_table("db.sales", columns, key=["year", "id"], range_partitions=years)
        >>> sales.range_partitions.drop(2020, 2021).dropped
        ('[2020, 2021)',)
        """
        return operations.TableRangePartitions(self.iceberg, self.branch)

    def verify(
        self,
        *,
        deep: bool = False,
        keys: bool = False,
        snapshot_id: int | None = None,
        erased: ErasureCertificate | None = None,
        progress: Progress | None = None,
    ) -> VerifyResult:
        """Check that every file, count, bound, order and checksum matches the metadata, for all retained snapshots or
        for one. Print the result; `is_clean` and `findings` are for programs. `deep` also reads the files. With
        `erased`, the certificate of `maintenance.erase`, every file is also searched for the erased rows.

        The table is not changed. `maintenance.repair()` fixes the findings that can be fixed without losing anything.

        >>> table.verify(deep=True).is_clean
        True
        """
        return self.maintenance.verify(deep=deep, keys=keys, snapshot_id=snapshot_id, erased=erased, progress=progress)

    # -- writing ------------------------------------------------------------------------------------------------------

    def append(
        self, rows: RowsLike, *, on_duplicate: str = "allow", on_refused: str = "fail", **commit: Unpack[CommitKeywords]
    ) -> CommitResult:
        """Add rows.

        `rows`: a pyarrow Table, RecordBatchReader, or anything with `__arrow_c_stream__`; a pandas DataFrame (named
        index levels become columns); a Polars LazyFrame; an iterable of batches, tables or frames; a list of dicts; or
        one dict for one row. A reader, an iterator, or a LazyFrame, is never materialised.

        `on_duplicate`, by the table's key: "allow"; "replace" (as `upsert`); "error" raises DuplicateKeyError; "ignore"
        skips rows whose key exists. "error" and "ignore" read the keys of the files that may hold them.

        `on_refused`: "fail" raises RowsRefusedError if a row does not fit the schema; "divert" writes the other rows
        and returns the refused ones with their reasons.

        >>> table.append(pa.table({"id1": ["C"], "id2": [7], "num_cal": [1]})).added_row_count
        1
        >>> again = pa.table({"id1": ["C", "D"], "id2": [7, 7], "num_cal": [1, 1]})
        >>> table.append(again, on_duplicate="ignore").added_row_count
        1
        """
        verb = partial(operations.append, rows=rows, on_duplicate=on_duplicate, on_refused=on_refused)
        return self._run(verb, rows, commit)

    def add_files(
        self,
        file_paths: Sequence[str],
        *,
        check_duplicate_files: bool = True,
        partitions: Sequence[Mapping[str, str | None]] | None = None,
        **commit: Unpack[CommitKeywords],
    ) -> CommitResult:
        """Add existing Parquet files as data files of the table. The files are not moved. A directory stands for all
        files below it, and a pattern such as `orders/*/*.parquet` for those that match; `**` matches any directories.

        A file in the directory of this or another table gets a new name in this table, because jobs may remove it under
        its current one. The new file is a hard link on a local disk, or a copy made by the object store.

        Columns are matched to the table's columns by name. The partition is derived from the column bounds. Footers are
        read; rows are read only if a footer does not show that they fit. Raises InvalidArgumentError for files that
        cannot belong to the table, RowsRefusedError for rows that do not fit, and AlreadyExistsError for files that the
        table has, or had before their rows were rewritten to other files. `check_duplicate_files=False` skips this last
        check, for callers who know that the files are new.

        `partitions` has, for each file, the values of columns that the file lacks, as text by column name. These are
        the values in directory names such as `day=2026-01-31`, which are the default. The table must be partitioned by
        the identity of these columns.

        >>> import pyarrow.parquet as pq
        >>> pq.write_table(pa.table({"id1": ["C"], "id2": [7], "num_cal": pa.array([1], pa.int32())}), "c.parquet")
        >>> table.add_files(["c.parquet"]).added_row_count
        1
        """
        # Refresh first: columns are matched by their current names, and files are compared with the current files.
        refresh(self.iceberg)
        paths = file_paths if isinstance(file_paths, str) else list(file_paths)
        verb = partial(operations.add_files, file_paths=paths, check_duplicate_files=check_duplicate_files)
        return self._run(partial(verb, partitions=partitions), None, commit)

    def delete(
        self,
        where: Where,
        *,
        mode: str = "auto",
        dry_run: bool | str = False,
        **commit: Unpack[CommitKeywords],
    ) -> CommitResult:
        """Delete the rows that match.

        `mode`: "range" and "equality" write a blind delete, and raise InvalidPredicateError if the predicate does not
        have that form. "scan" finds the rows and writes position deletes. "auto" takes the cheapest mode that is exact,
        and removes data files without opening them if all of their rows match.

        `dry_run` counts the rows that would be deleted. It reads the table and changes nothing; all operations that
        delete or replace have it. Operations that only delete also take `dry_run="metadata"`: `estimate` then has the
        maximum numbers of affected data files, bytes and rows, and no data file is opened.

        >>> table.delete("id1 = 'A' AND num_cal = 2", mode="scan").deleted_row_count
        1
        >>> print(table.delete("id1 = 'A'").deleted_row_count)  # A range delete, which counts nothing.
        None
        >>> table.scan().count()
        1
        >>> table.delete("id1 = 'B'", dry_run=True).deleted_row_count, table.scan().count()
        (1, 1)
        >>> table.delete("id1 = 'B'", dry_run="metadata").estimate.row_count_max
        3
        """
        return self._run(partial(operations.delete, where=where, mode=mode), None, commit, dry_run=dry_run)

    def delete_prefix(
        self,
        prefix: Mapping[str, Any] | Any,
        *,
        mode: str = "auto",
        dry_run: bool | str = False,
        **commit: Unpack[CommitKeywords],
    ) -> CommitResult:
        """Delete every row whose key begins with the prefix. No existing data is read.

        `prefix`: leading key columns and their values, or an Arrow table of many prefixes. `mode="scan"` reads the
        matching rows instead, and counts them.

        >>> result = table.delete_prefix({"id1": "A", "id2": 3})
        >>> table.scan(columns=["id1", "id2"]).to_arrow().to_pydict()
        {'id1': ['B'], 'id2': [1]}
        """
        return self._run(partial(operations.delete_prefix, prefix=prefix, mode=mode), prefix, commit, dry_run=dry_run)

    def delete_range(
        self,
        *,
        lower: Sequence[Any] | None = None,
        upper: Sequence[Any] | None = None,
        on: Sequence[str] | None = None,
        mode: str = "auto",
        everything: bool = False,
        dry_run: bool | str = False,
        **commit: Unpack[CommitKeywords],
    ) -> CommitResult:
        """Delete the rows from `lower` (included) to `upper` (excluded). No existing data is read.

        The bounds are tuples of leading values of the columns `on` (default: the key). None as a bound is open and
        includes nulls; None inside a tuple is the null value. Equal bounds delete nothing and make no snapshot. Without
        any bound all rows are deleted, which requires `everything=True`.

        >>> result = table.delete_range(lower=("A", 3, 2), upper=("C",))
        >>> table.scan(columns=["id1", "id2", "num_cal"]).to_arrow().to_pylist()
        [{'id1': 'A', 'id2': 3, 'num_cal': 1}]
        >>> result = table.delete_range(lower=(1,), upper=(2,), on=["num_cal"])
        >>> table.scan().count()
        0
        """
        verb = partial(operations.delete_range, lower=lower, upper=upper, on=on, mode=mode, everything=everything)
        return self._run(verb, None, commit, dry_run=dry_run)

    def delete_ranges(
        self, ranges: Any, *, mode: str = "auto", dry_run: bool | str = False, **commit: Unpack[CommitKeywords]
    ) -> CommitResult:
        """Delete many ranges in one snapshot. No existing data is read.

        `ranges`: an Arrow table with one row for each range and the columns `lower_<column>` and `upper_<column>`, for
        any ordered columns; the first column is the most significant. Lower bounds are included, upper bounds are not.
        A null means unbounded: with `lower_id1` = "A" and a null in `lower_id2`, the range begins with the first row of
        "A"; with nulls in the upper columns after "A", it ends with the last row of "A". `mode`: as in `delete_range`.

        >>> cutoffs = pa.table({"lower_id1": ["A", "B"], "upper_id1": ["A", "B"], "upper_id2": [4, 1]})
        >>> result = table.delete_ranges(cutoffs)  # Of "A" below 4, of "B" below 1.
        >>> table.scan(columns=["id1", "id2"]).to_arrow().to_pydict()
        {'id1': ['B'], 'id2': [1]}
        """
        return self._run(partial(operations.delete_ranges, ranges=ranges, mode=mode), ranges, commit, dry_run=dry_run)

    def delete_rows(
        self, keys: RowsLike, *, dry_run: bool | str = False, **commit: Unpack[CommitKeywords]
    ) -> CommitResult:
        """Delete the rows whose columns equal a row of `keys`, an Arrow table. No existing data is read. Null equals
        null.

        >>> result = table.delete_rows(pa.table({"id1": ["A"], "num_cal": [2]}))
        >>> table.scan(columns=["id1", "num_cal"]).to_arrow().to_pydict()
        {'id1': ['A', 'B'], 'num_cal': [1, 1]}
        """
        return self._run(partial(operations.delete_rows, keys=keys), keys, commit, dry_run=dry_run)

    def replace(
        self,
        rows: RowsLike,
        *,
        prefix: Sequence[str] | None = None,
        order_by: str | Sequence[str] | None = None,
        cover: Any = None,
        on_refused: str = "fail",
        on_stale: str = "ignore",
        dry_run: bool = False,
        **commit: Unpack[CommitKeywords],
    ) -> CommitResult:
        """Add `rows`, and delete every older row whose key prefix occurs in `rows`, in one snapshot. No existing data
        is read.

        `prefix`: leading columns of the key, by default all of it. `order_by`: columns that order the messages of a
        prefix, such as an offset; only the newest rows of each prefix are added. Columns of `order_by` that the table
        lacks are not stored. A row whose other key columns are all null adds nothing: it empties its prefix. `cover`: a
        table of further prefixes to delete. Raises DuplicateKeyError if two rows have the same key.

        With `on_refused="divert"` a refused row takes all rows of its prefix along, and the stored rows of this prefix
        stay.

        On a table with an order column (`tableformat.order-column`), `order_by` is that column by default, and messages
        older than the stored rows of their prefix are left out. For this the stored keys are read; see `on_stale` of
        `upsert`.

        >>> result = table.replace(pa.table({"id1": ["A"], "id2": [3], "num_cal": [9]}), prefix=["id1", "id2"])
        >>> table.scan(where="id1 = 'A'", columns=["id2", "num_cal"]).to_arrow().to_pydict()
        {'id2': [3], 'num_cal': [9]}
        >>> rows = pa.table({"id1": ["A", "A"], "id2": [3, 3], "num_cal": [7, 8], "offset": [41, 42]})
        >>> result = table.replace(rows, prefix=["id1", "id2"], order_by="offset")
        >>> table.scan(where="id1 = 'A'", columns=["num_cal"]).to_arrow().to_pydict()
        {'num_cal': [8]}
        """
        held = operations.held(cover, "cover")
        verb = partial(operations.replace, rows=rows, prefix=prefix, order_by=order_by, cover=held)
        verb = partial(verb, on_refused=on_refused, on_stale=on_stale)
        return self._run(verb, rows, commit, dry_run=dry_run)

    def replace_interval(
        self,
        rows: RowsLike,
        *,
        on: str | Sequence[str],
        lower: Any,
        upper: Any,
        everything: bool = False,
        blind: bool = False,
        on_refused: str = "fail",
        dry_run: bool = False,
        **commit: Unpack[CommitKeywords],
    ) -> CommitResult:
        """Delete the rows with `lower <= on < upper` and add `rows`, in one snapshot. Rows outside of the interval are
        rejected. None as a bound is open; if both are open, all rows are replaced, which requires `everything=True`.

        Data files whose bounds lie inside the interval are removed without being opened. If other files may have rows
        in it, one range delete covers those rows. With `blind=True`, and in a transaction, the range delete is written
        without reading any metadata.

        >>> result = table.replace_interval(
        ...     pa.table({"id1": ["E"], "id2": [2], "num_cal": [1]}), on="id2", lower=0, upper=3
        ... )
        >>> table.scan(columns=["id1", "id2"]).to_arrow().sort_by("id1").to_pydict()
        {'id1': ['A', 'A', 'E'], 'id2': [3, 3, 2]}
        """
        span = {"on": on, "lower": lower, "upper": upper, "everything": everything}
        verb = partial(operations.replace_interval, rows=rows, **span, blind=blind, on_refused=on_refused)
        return self._run(verb, rows, commit, dry_run=dry_run)

    def replace_partition(
        self,
        rows: RowsLike,
        partition: str | BoundLike,
        *,
        on_refused: str = "fail",
        dry_run: bool = False,
        **commit: Unpack[CommitKeywords],
    ) -> CommitResult:
        """Delete the rows of one range partition and add `rows`, in one snapshot, as `replace_interval` does. Rows
        outside of the partition are rejected.

        `partition`: its name in `range_partitions.list()`, or its bounds, such as `(lower, upper)`.

        >>> years = tf.RangePartitions(on=["year"], bounds=[(2020, 2024)], step=1)
        >>> columns = pa.schema([("year", pa.int32()), ("id", pa.int64())])
        >>> sold = catalog.create_table("db.sold", columns, key=["year", "id"], range_partitions=years)
        >>> result = sold.append(pa.table({"year": [2020, 2021], "id": [1, 2]}))
        >>> sold.replace_partition(pa.table({"year": [2021], "id": [7]}), (2021, 2022)).deleted_row_count
        1
        >>> sold.scan().to_arrow().sort_by("id").to_pydict()
        {'year': [2020, 2021], 'id': [1, 7]}
        """
        verb = partial(operations.replace_partition, rows=rows, partition=partition, on_refused=on_refused)
        return self._run(verb, rows, commit, dry_run=dry_run)

    def upsert(
        self,
        rows: RowsLike,
        *,
        order_by: str | Sequence[str] | None = None,
        missing: str = "error",
        on_refused: str = "fail",
        on_stale: str = "ignore",
        dry_run: bool = False,
        **commit: Unpack[CommitKeywords],
    ) -> CommitResult:
        """Add rows and delete the older rows with the same key. No existing data is read. Raises DuplicateKeyError if
        two rows have the same key.

        `order_by`: columns that order the rows of a key; only the newest row of each key is added. Columns of
        `order_by` that the table lacks are not stored.

        `missing`, if the rows lack columns: "error" raises InvalidArgumentError; "null" writes null, or the column's
        default; "keep" reads the stored rows of these keys and keeps their values, so other commits may conflict with
        it.

        `on_stale`, for a table with an order column (`tableformat.order-column`), if the stored row of the key, or a
        delete of it, is newer: "ignore" leaves the row out, "divert" also returns it in `refused`, "error" raises
        StaleRowsError. `stale_row_count` counts the rows that were left out. Stored keys are read for this, only on
        such a table.

        >>> from datetime import date
        >>> result = table.upsert(pa.table({"id1": ["B"], "id2": [1], "num_cal": [1], "open_on": [date(2026, 1, 2)]}))
        >>> table.scan(where="id1 = 'B'", columns=["open_on"]).to_arrow().to_pylist()
        [{'open_on': datetime.date(2026, 1, 2)}]
        >>> result = table.upsert([{"id1": id1, "id2": 1, "num_cal": 1} for id1 in "BC"], missing="keep")
        >>> table.scan(where="id2 = 1", columns=["id1", "open_on"]).to_arrow().sort_by("id1").to_pylist()
        [{'id1': 'B', 'open_on': datetime.date(2026, 1, 2)}, {'id1': 'C', 'open_on': None}]
        """
        verb = partial(operations.upsert, rows=rows, order_by=order_by, missing=missing)
        verb = partial(verb, on_refused=on_refused, on_stale=on_stale)
        return self._run(verb, rows, commit, dry_run=dry_run)

    def update(
        self,
        where: Where,
        *,
        set: Mapping[str, Any],
        dry_run: bool = False,
        **commit: Unpack[CommitKeywords],
    ) -> CommitResult:
        """Set new values in the rows that match, in one snapshot. The rows are read, deleted by position and written
        again.

        `set` maps columns to new values. Text is an SQL expression of DuckDB over the old row; anything else is the
        value. Times without an offset are UTC, as in `where`. Key columns cannot be changed. New rows are checked
        against constraints and range partitions, as appended rows are.

        >>> result = table.update("id1 = 'A'", set={"open_on": "DATE '2026-01-01' + num_cal"})
        >>> result.deleted_row_count, result.added_row_count
        (2, 2)
        >>> table.get(("A", 3, 2))["open_on"]
        datetime.date(2026, 1, 3)
        """
        from tableformat.operations.verbs.update import update

        return self._run(partial(update, where=where, set=set), None, commit, dry_run=dry_run)

    def merge(
        self,
        source: RowsLike,
        *,
        on: str | Sequence[str],
        source_alias: str = "source",
        target_alias: str = "target",
        **commit: Unpack[CommitKeywords],
    ) -> Merge[CommitResult]:
        """Compare the rows of `source` with the rows of the table. Clauses then decide which rows are updated, deleted
        or inserted. `execute()` commits the merge in one snapshot; in a transaction it is staged. The API is modelled
        on delta-rs.

        `source`: rows as for `append`, held in memory; they may have columns that the table lacks. `on`: columns that
        both sides have and that must be equal, or SQL text such as "target.id1 = source.name", in UTC. Null equals
        nothing.

        Only target rows that may have the source's values are read. Changed rows are deleted by position and written
        again. If several source rows match one target row, DuplicateKeyError is raised.

        >>> rows = pa.table({"id1": ["A", "C"], "id2": [3, 7], "num_cal": [1, 1], "days": [4, 5]})
        >>> merge = table.merge(rows, on=["id1", "id2", "num_cal"])
        >>> merge = merge.when_matched_update({"open_on": "DATE '2026-01-01' + source.days::INTEGER"})
        >>> result = merge.when_not_matched_insert_all(except_cols=["days"]).execute()
        >>> result.deleted_row_count, result.added_row_count, table.get(("A", 3, 1))["open_on"]
        (1, 2, datetime.date(2026, 1, 5))
        """
        from tableformat.operations.merging.builder import Merge
        from tableformat.operations.verbs.merge import merge

        CommitOptions.of("merge", ("on", "source_alias", "target_alias"), **commit)
        held = operations.held(source)

        def run(statement: MergeStatement, dry_run: bool) -> CommitResult:
            return self._run(partial(merge, source=held, statement=statement), None, commit, dry_run=dry_run)

        on = on if isinstance(on, str) else tuple(on)
        return Merge(MergeStatement(on=on, source_alias=source_alias, target_alias=target_alias), run)

    def apply_changes(
        self,
        changes: Any,
        *,
        op: str = "_op",
        order_by: str | Sequence[str] | None = "_ts",
        envelope: str | None = None,
        key: str | None = "table",
        on_refused: str = "fail",
        missing: str = "error",
        on_stale: str = "ignore",
        dry_run: bool = False,
        **commit: Unpack[CommitKeywords],
    ) -> CommitResult:
        """Apply change events. The last event of each key, by `order_by` and then by position, decides.

        `op`: a column of text. I, C, R, U, `insert`, `update`, `upsert`, `update_postimage`, +I and +U store the row of
        the event. D, `delete`, `update_before`, `update_preimage`, -D and -U delete the row with its key. T and
        `truncate` empty the table. Deletes need only the key columns. `op` and the columns of `order_by` are stored if
        the table has columns with these names.

        `envelope="debezium"`: the columns are `before` and `after` (structs of the row's columns), `op` (c, r, u, d, t)
        and `source`. The fields `lsn`, or `file`, `pos` and `row`, of `source` order the events unless `order_by` names
        others, such as "source.ts_ms". These columns may also be the fields of a column `payload`.

        `key=None`: each delete removes exactly one row that is equal in all columns, so the number of equal rows stays
        right. Raises RowNotFoundError if no such row is left.

        `missing`: as for `upsert`, for columns that inserts and updates lack. Raises InvalidKeyError for a table
        without a key, unless `key=None`.

        `on_stale`: as for `upsert`. On a table with an order column, deletes are compared too, and their values are
        remembered. There, truncate events, `envelope`, `key=None` and `missing="keep"` are errors.

        >>> rows = {"id1": ["C", "B"], "id2": [7, 1], "num_cal": [1, 1], "open_on": [None, None]}
        >>> result = table.apply_changes(pa.table({"_op": ["insert", "delete"], "_ts": [1, 2], **rows}))
        >>> table.scan(columns=["id1"]).to_arrow().sort_by("id1").to_pydict()
        {'id1': ['A', 'A', 'C']}

        >>> row = {"id1": "C", "id2": 7, "num_cal": 1, "open_on": None}
        >>> event = {"before": row, "after": {**row, "num_cal": 2}, "op": "u", "source": {"lsn": 81}}
        >>> result = table.apply_changes(pa.Table.from_pylist([event]), envelope="debezium")
        >>> table.get(("C", 7, 2))["id1"]
        'C'
        """
        verb = partial(
            operations.apply_changes,
            changes=changes,
            op=op,
            order_by=order_by,
            envelope=envelope,
            key=key,
            on_refused=on_refused,
            missing=missing,
            on_stale=on_stale,
        )
        return self._run(verb, changes, commit, dry_run=dry_run)

    def revert(self, snapshot_id: int, *, dry_run: bool = False, **commit: Unpack[CommitKeywords]) -> CommitResult:
        """Undo one commit and keep the later ones: rows that it wrote are deleted, and rows that it deleted come back.

        All keys whose rows the commit changed get their earlier rows back. Raises RevertConflictError if a later commit
        changed rows of these keys; `rollback` undoes all commits after a snapshot. The table needs a key.

        >>> mistake = table.delete_prefix({"id1": "A"}).snapshot_id
        >>> result = table.append(pa.table({"id1": ["C"], "id2": [7], "num_cal": [1]}))
        >>> table.revert(mistake).added_row_count, table.scan().count()
        (2, 4)
        """
        from tableformat.changes.revert import revert

        return self._run(partial(revert, snapshot_id=snapshot_id), None, commit, dry_run=dry_run)

    def restore_rows(
        self,
        where: Where,
        *,
        snapshot_id: int | None = None,
        as_of: datetime | str | int | None = None,
        tag: str | None = None,
        dry_run: bool = False,
        **commit: Unpack[CommitKeywords],
    ) -> CommitResult:
        """Restore the rows that match `where` to the state of an earlier snapshot. Other rows are unchanged.

        In one snapshot, the rows that match now are deleted, and the rows that matched then are added. Exactly one of
        `snapshot_id`, `as_of` and `tag` chooses the earlier state.

        >>> loaded = table.snapshot_id
        >>> result = table.delete_prefix({"id1": "A"})
        >>> table.restore_rows("id1 = 'A' AND num_cal = 2", snapshot_id=loaded).added_row_count
        1
        >>> table.scan(columns=["id1", "num_cal"]).to_arrow().sort_by("id1").to_pydict()
        {'id1': ['A', 'B'], 'num_cal': [2, 1]}
        """
        exactly_one(snapshot_id=snapshot_id, as_of=as_of, tag=tag)
        from tableformat.changes.revert import restore_rows

        state = self.at(snapshot_id=snapshot_id, as_of=as_of, tag=tag)
        return self._run(partial(restore_rows, state=state, where=where), None, commit, dry_run=dry_run)

    def overwrite(
        self,
        rows: RowsLike,
        *,
        where: Where | None = None,
        allow_outside: bool = False,
        on_refused: str = "fail",
        dry_run: bool = False,
        **commit: Unpack[CommitKeywords],
    ) -> CommitResult:
        """Delete the rows that match `where`, or all rows without it, and add `rows`, in one snapshot.

        A new row that does not match `where` is rejected unless `allow_outside` is set, because a repeated call would
        add it again. `on_refused`: as for `append`.

        >>> result = table.overwrite(pa.table({"id1": ["A"], "id2": [3], "num_cal": [5]}), where="id1 = 'A'")
        >>> table.scan(columns=["id1", "num_cal"]).to_arrow().sort_by("id1").to_pydict()
        {'id1': ['A', 'B'], 'num_cal': [5, 1]}
        """
        verb = partial(operations.overwrite, rows=rows, where=where, allow_outside=allow_outside, on_refused=on_refused)
        return self._run(verb, rows, commit, dry_run=dry_run)
