"""`ArrowRows`: rows read on demand, as Arrow tables, batches and datasets, pandas, Polars and DuckDB."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import pyarrow as pa
import pyarrow.dataset as ds
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression
from pyiceberg.schema import Schema

from tableformat.arguments import checked_methods
from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.filters.bound_filter import TRUE, bind_filter
from tableformat.filters.filter_text import filter_text
from tableformat.filters.predicate import Where, parse_where
from tableformat.markup import html
from tableformat.merge_on_read.small_files.joint_positions import deleted_positions_of
from tableformat.merge_on_read.task import RowTask
from tableformat.metadata.alike_names import refuse_alike_columns
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.parquet.array_forms import rows_as, storage_of, with_parts
from tableformat.scan.batch_stream import BatchStream
from tableformat.scan.context import ReadContext
from tableformat.scan.dataset import LakeDataset
from tableformat.scan.duckdb_dataset import DuckDBDataset
from tableformat.scan.nested_offsets import struct_offset_remover
from tableformat.scan.polars_frame import lazy_frame
from tableformat.scan.reader import read_tables

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars


@checked_methods
class ArrowRows(ABC):
    """Rows of tasks that match a filter. Immutable: `filter` and `select` return new objects. Nothing is read until a
    method returns rows or the plan.

    Columns have the Arrow types of the table's schema: `string`, `binary` and `list` with 32-bit offsets, and
    `arrow.uuid` for UUIDs. The metadata of the schema has no field ids.

    >>> table.scan().filter("num_cal = 1").select(["id1", "id2"]).to_arrow().to_pydict()
    {'id1': ['A', 'B'], 'id2': [3, 1]}
    """

    def __init__(
        self,
        view: SnapshotView,
        where: Where | None,
        columns: Sequence[str] | None,
        limit: int | None,
    ) -> None:
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise InvalidArgumentError(f"limit must be a whole number of rows, 0 or more, not {limit!r}.")
        self._view = view
        self._where = parse_where(where, view.schema)
        self._columns = columns if columns is None or isinstance(columns, str) else list(columns)
        self._limit = limit
        self._context = ReadContext.of(view, self._columns)

    @abstractmethod
    def _tasks(self) -> Iterable[RowTask]:
        """The tasks, in the order of their rows."""

    @abstractmethod
    def _with(self, where: BooleanExpression, columns: Sequence[str] | None) -> Self:
        """The same rows with another filter and other columns."""

    @abstractmethod
    def _subject(self) -> str:
        """The snapshots that are read, as text."""

    def __repr__(self) -> str:
        return self._text(self._subject())

    def _repr_html_(self) -> str:
        """The plan. No row is read."""
        where = "every row" if isinstance(self._where, AlwaysTrue) else filter_text(self._where)
        limit = [] if self._limit is None else [("limit", f"{self._limit:,} rows")]
        return html.fragment(
            type(self).__name__.lower(),
            html.facts([("reads", self._subject()), ("where", where), *limit]),
            html.grid(("column", "type"), [(field.name, field.type) for field in self.schema]),
            html.quiet(
                "Nothing has been read yet. Read with to_arrow(), to_batches(), to_pandas(), to_polars() or count()."
            ),
        )

    def _text(self, subject: str) -> str:
        where = "" if isinstance(self._where, AlwaysTrue) else f", where={filter_text(self._where)}"
        limit = "" if self._limit is None else f", limit={self._limit}"
        return f"{type(self).__name__}({subject}, columns={self.schema.names}{where}{limit})"

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
        """The names to pass to `select` for some of the top-level columns. A struct keeps the fields to which it was
        reduced.

        >>> address = pa.struct({"city": pa.string(), "street": pa.string()})
        >>> shops = catalog.create_table("db.shops", pa.schema({"name": pa.string(), "address": address}))
        >>> shops.scan(columns=["name", "address.city"]).columns_of(["address"])
        ['address.city']
        """
        if self._columns is None:
            return list(names)
        return [
            column
            for name in names
            for column in self._columns
            if column == name or (column.startswith(f"{name}.") and name not in self._columns)
        ]

    def filter(self, where: Where) -> Self:
        """The rows that match this filter and `where`, which may name any column of the table.

        >>> table.scan().filter("id1 = 'A'").filter("num_cal > 1").count()
        1
        """
        return self._with(And(self._where, parse_where(where, self._view.schema)), self._columns)

    def select(self, columns: Sequence[str]) -> Self:
        """The same rows with other columns, which may be any columns of the table.

        >>> table.scan(where="id1 = 'B'").select(["num_cal", "id2"]).to_arrow().to_pylist()
        [{'num_cal': 1, 'id2': 1}]
        """
        return self._with(self._where, columns)

    def to_arrow(self) -> pa.Table:
        """All rows in memory.

        >>> table.scan(columns=["id1", "num_cal"]).to_arrow().to_pydict()
        {'id1': ['A', 'A', 'B'], 'num_cal': [1, 2, 1]}
        """
        tables = list(self._tables())
        if len(self.schema) == 0:
            # A concatenated table without columns loses its number of rows; batches keep it.
            return pa.Table.from_batches([batch for table in tables for batch in table.to_batches()], self.schema)
        # `Schema.empty_table` does not support nested types that contain a UUID.
        without_offsets = struct_offset_remover(self.schema)
        return pa.concat_tables([pa.Table.from_batches([], self.schema), *map(without_offsets, tables)])

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows as a stream of batches that are read on demand. Memory use does not depend on the size of the table.

        The stream can be read once, also by several threads. To stop reading early, close it or drop the reference. If
        a file cannot be read, every further call raises the error.

        >>> with table.scan(columns=["id1"]).to_batches() as batches:
        ...     print([batch.num_rows for batch in batches])
        [3]
        """
        without_offsets = struct_offset_remover(self.schema)
        batches = (without_offsets(batch) for table in self._tables() for batch in table.to_batches() if batch.num_rows)
        return pa.RecordBatchReader.from_batches(self.schema, BatchStream(batches))

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The same as `to_batches`, under PyIceberg's name.

        >>> table.scan().to_arrow_batch_reader().read_all().num_rows
        3
        """
        return self.to_batches()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Libraries that take Arrow streams can read the rows, any number of times."""
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def to_dataset(self) -> ds.Dataset:
        """A `pyarrow.dataset.Dataset` over the rows. Engines push columns and filters into it, and can scan it
        repeatedly.

        With a limit, the dataset holds the limited rows in memory. Otherwise the choice of rows would depend on the
        engine's filter.

        >>> import pyarrow.dataset as ds
        >>> table.scan().to_dataset().count_rows(filter=ds.field("id1") == "A")
        2
        """
        if self._limit is not None:
            return ds.InMemoryDataset(self.to_arrow())
        return LakeDataset(self)

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """All rows as pandas. The options are passed to `pyarrow.Table.to_pandas`.

        >>> table.scan(columns=["id1", "num_cal"]).to_pandas().groupby("id1")["num_cal"].sum().to_dict()
        {'A': 3, 'B': 1}
        """
        _require("pandas", extra="pandas")
        rows = self.to_arrow()
        stored = [field.with_type(with_parts(field.type, _in_objects)) for field in rows.schema]
        return rows_as(rows, pa.schema(stored, rows.schema.metadata)).to_pandas(**options)

    @overload
    def to_polars(self) -> polars.DataFrame: ...
    @overload
    def to_polars(self, *, lazy: Literal[False]) -> polars.DataFrame: ...
    @overload
    def to_polars(self, *, lazy: Literal[True]) -> polars.LazyFrame: ...
    def to_polars(self, *, lazy: bool = False) -> polars.DataFrame | polars.LazyFrame:
        """All rows as Polars. A lazy frame pushes columns and filters of its query into the scan. With a limit, it
        holds the limited rows in memory.

        >>> table.scan(columns=["id1", "num_cal"]).to_polars()["num_cal"].to_list()
        [1, 2, 1]
        """
        package = _require("polars", extra="polars")
        if lazy and self._limit is None:
            return lazy_frame(self)
        frame: polars.DataFrame = package.from_arrow(self.to_arrow())
        return frame.lazy() if lazy else frame

    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection | None = None, name: str | None = None
    ) -> duckdb.DuckDBPyRelation:
        """A DuckDB relation over the rows, registered as `name` if it is given. DuckDB pushes columns and filters into
        the scan.

        The default connection of DuckDB is used if none is given.

        >>> import duckdb
        >>> relation = table.scan().to_duckdb(duckdb.connect(), name="calendars")
        >>> relation.aggregate("id1, count(*)").order("id1").fetchall()
        [('A', 2), ('B', 1)]
        """
        package = _require("duckdb", extra="")
        at: duckdb.DuckDBPyConnection = package.default_connection() if connection is None else connection
        if not isinstance(at, package.DuckDBPyConnection):
            hint = f" Pass the name of the rows as name={at!r}." if isinstance(at, str) else ""
            raise InvalidArgumentError(f"connection must be a DuckDB connection, not {type(at).__name__}.{hint}")
        refuse_alike_columns(self.schema, what="the result")
        dataset = self.to_dataset() if self._limit is not None else DuckDBDataset(self)
        if name is not None:
            at.register(name, dataset)
        relation: duckdb.DuckDBPyRelation = at.from_arrow(dataset)
        return relation

    def count(self) -> int:
        """The number of matching rows. Metadata is enough without deletes and without a remaining filter. Otherwise
        deleted positions are computed, and columns are read only if the filter needs them.

        >>> table.scan(where="id1 = 'A'").count()
        2
        """
        total = 0
        for row_count in self.row_counts():
            total += row_count
            if self._limit is not None and total >= self._limit:
                return self._limit
        return total

    def row_counts(self) -> Iterator[int]:
        """The numbers of matching rows in parts, without regard to the limit: first from metadata, then from files with
        deletes, then from files whose rows the filter has to check.

        >>> sum(table.scan().row_counts())
        3
        """
        whole: list[RowTask] = []
        filtered: list[RowTask] = []
        for task in self._tasks():
            matches_all = bind_filter(task.residual, self._view.schema) is TRUE
            (whole if matches_all else filtered).append(task)
        yield sum(task.data_file.record_count for task in whole if not task.has_deletes)
        partial = [task for task in whole if task.has_deletes]
        deleted = deleted_positions_of(partial, self._context.merge, thread_count=pa.cpu_count())
        yield sum(task.data_file.record_count for task in partial) - sum(map(len, deleted))
        if filtered:
            context = replace(self._context, selected=Schema())
            yield from (rows.num_rows for rows in read_tables(filtered, context, narrow=False))

    def _tables(self) -> Iterator[pa.Table]:
        return limited(read_tables(self._tasks(), self._context), self._limit)


def _in_objects(part: pa.DataType) -> pa.DataType:
    """The type of a part of a nested column for pandas: PyArrow cannot convert UUIDs and fixed bytes in lists to
    objects."""
    stored = storage_of(part)
    return pa.binary() if pa.types.is_fixed_size_binary(stored) else with_parts(part, _in_objects)


def _require(package: str, *, extra: str) -> Any:
    """The package. Raises UnsupportedFeatureError, which names the extra to install, if it is missing."""
    try:
        return import_module(package)
    except ImportError as error:
        wanted = f"tableformat[{extra}]" if extra else package
        raise UnsupportedFeatureError(
            f"{package} is not installed ({error}). Install it with pip install '{wanted}', or use to_arrow(), which "
            "needs no other package."
        ) from error


def limited(tables: Iterator[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    """The first `limit` rows. Reading stops with the table that completes them."""
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
