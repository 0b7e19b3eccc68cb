"""A scan: which rows and columns of one snapshot, and the forms in which to have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression
from pyiceberg.schema import Schema

from tableformat.errors import InvalidArgumentError
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.bound_filter import TRUE, bind_filter
from tableformat.scan.dataset import LakeDataset
from tableformat.scan.explain import ScanExplanation, explain_plan
from tableformat.scan.filter_text import filter_text
from tableformat.scan.plan import ScanPlan
from tableformat.scan.planner import plan_scan
from tableformat.scan.predicate import parse_where
from tableformat.scan.reader import ReadContext, read_tables
from tableformat.scan.resolve import resolve
from tableformat.scan.task import FileScanTask

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars


class Scan:
    """Rows of one snapshot that match a filter. Immutable: `filter` and `select` return new scans; nothing is read
    before a method asks for rows or for the plan.

    Rows come in no particular order, though the same one every time. Columns have the Arrow types of the table's
    schema: `string`, `binary` and `list` with 32-bit offsets, `arrow.uuid` for uuids, no field ids in the metadata.
    """

    def __init__(
        self,
        view: SnapshotView,
        where: str | BooleanExpression | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> None:
        """`where` is SQL text or a PyIceberg expression, `columns` names in the order wanted, `limit` a number of
        rows.

        UnknownColumnError with the nearest name, InvalidPredicateError, InvalidArgumentError.
        """
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise InvalidArgumentError(f"limit must be a whole number of rows, 0 or more, not {limit!r}.")
        self._view = view
        self._where = parse_where(where, view.schema)
        self._columns = columns if columns is None or isinstance(columns, str) else list(columns)
        self._limit = limit
        self._context = ReadContext.of(view, self._columns)

    def __repr__(self) -> str:
        snapshot = "no snapshot" if self._view.snapshot is None else f"snapshot {self._view.snapshot.snapshot_id}"
        where = "" if isinstance(self._where, AlwaysTrue) else f", where={filter_text(self._where)}"
        limit = "" if self._limit is None else f", limit={self._limit}"
        return f"Scan({snapshot}, columns={self.schema.names}{where}{limit})"

    @property
    def view(self) -> SnapshotView:
        """The snapshot that is read."""
        return self._view

    @property
    def where(self) -> BooleanExpression:
        return self._where

    @property
    def limit(self) -> int | None:
        return self._limit

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return self._context.arrow_schema

    def columns_of(self, names: Sequence[str]) -> list[str]:
        """What to pass to `select` for some of this scan's own top-level columns: a struct keeps the fields it was
        cut down to."""
        if self._columns is None:
            return list(names)
        return [
            column
            for name in names
            for column in self._columns
            if column == name or (column.startswith(f"{name}.") and name not in self._columns)
        ]

    def filter(self, where: str | BooleanExpression) -> Scan:
        """A scan of the rows that match this scan's filter and `where`, over all columns of the table."""
        both = And(self._where, parse_where(where, self._view.schema))
        return Scan(self._view, both, self._columns, self._limit)

    def select(self, columns: Sequence[str]) -> Scan:
        """A scan of other columns; any of the table's."""
        return Scan(self._view, self._where, columns, self._limit)

    def plan(self) -> ScanPlan:
        """Which files are read and which deletes apply to them. Reads metadata, and range delete files within a
        budget."""
        return self._plan

    @cached_property
    def _plan(self) -> ScanPlan:
        return plan_scan(self._view, self._where, context=self._context.resolve)

    def explain(self) -> ScanExplanation:
        """Why the scan reads what it reads; prints as a report, `to_dict()` for programs."""
        return explain_plan(self._plan)

    def to_arrow(self) -> pa.Table:
        """All rows in memory."""
        tables = list(self._tables())
        if len(self.schema) == 0:
            # Tables without columns lose their length when they are put together, batches do not.
            return pa.Table.from_batches([batch for table in tables for batch in table.to_batches()], self.schema)
        return pa.concat_tables([self.schema.empty_table(), *tables])

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows as a stream of batches, read as they are asked for; memory does not grow with the table.

        Can be read once. Close it, or let it go, to stop the reading early.
        """
        batches = (batch for table in self._tables() for batch in table.to_batches() if batch.num_rows)
        return pa.RecordBatchReader.from_batches(self.schema, batches)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Any library that takes Arrow streams reads a scan, as often as it likes."""
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def to_dataset(self) -> ds.Dataset:
        """A `pyarrow.dataset.Dataset` over the rows: engines push columns and filters into it and scan it repeatedly.

        With a limit it holds the limited rows in memory, because which rows these are must not depend on the engine's
        filter.
        """
        if self._limit is not None:
            return ds.InMemoryDataset(self.to_arrow())
        return LakeDataset(self)

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """All rows as pandas; options go to `pyarrow.Table.to_pandas`."""
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> polars.DataFrame:
        """All rows as polars; for lazy reading give `to_dataset()` to `polars.scan_pyarrow_dataset`."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection | None = None, name: str | None = None
    ) -> duckdb.DuckDBPyRelation:
        """A DuckDB relation over the rows, registered as `name` if one is given; DuckDB pushes columns and filters
        into the scan.

        Without a connection DuckDB's default one is used.
        """
        import duckdb

        at = duckdb.default_connection() if connection is None else connection
        dataset = self.to_dataset()
        if name is not None:
            at.register(name, dataset)
        return at.from_arrow(dataset)

    def count(self) -> int:
        """How many rows match. From metadata where no delete and no filter is left to apply; else from the positions
        of deleted rows; columns are read only where the filter needs them."""
        total = 0
        filtered: list[FileScanTask] = []
        for task in self._plan.tasks:
            if bind_filter(task.residual, self._view.schema) is not TRUE:
                filtered.append(task)
                continue
            total += task.data_file.record_count - len(resolve(task, self._context.resolve))
        if filtered and (self._limit is None or total < self._limit):
            context = replace(self._context, selected=Schema())
            total += sum(rows.num_rows for rows in read_tables(filtered, context, narrow=False))
        return total if self._limit is None else min(total, self._limit)

    def _tables(self) -> Iterator[pa.Table]:
        return limited(read_tables(self._plan.tasks, self._context), self._limit)


def limited(tables: Iterator[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    """The first `limit` rows; reading stops with the table that completes them."""
    left = limit
    if left == 0:
        return
    for table in tables:
        if left is None:
            yield table
            continue
        yield table.slice(0, left)
        left -= min(left, table.num_rows)
        if left == 0:
            return
