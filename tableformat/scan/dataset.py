"""A scan as a `pyarrow.dataset.Dataset`, through which DuckDB, Polars, pandas and pyarrow itself read.

Engines read `schema` and call `scanner` with the columns and the filter of one query. Each call plans again, so a
dataset can be scanned any number of times, and every scan sees the same snapshot. The C++ object of other datasets does
not exist here. Methods that need it are either implemented on rows or raise an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from tableformat.errors import UnknownColumnError, UnsupportedFeatureError
from tableformat.filters.arrow_filter import Translation, translate
from tableformat.filters.bound_filter import TRUE, to_expression
from tableformat.filters.predicate import Where
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.nested_offsets import struct_offset_remover


class FilterableRows(Protocol):
    """Rows that can be filtered and projected and then read, any number of times, such as `ArrowRows`."""

    @property
    def view(self) -> SnapshotView: ...

    @property
    def limit(self) -> int | None: ...

    @property
    def schema(self) -> pa.Schema: ...

    def columns_of(self, names: Sequence[str]) -> list[str]: ...

    def select(self, columns: Sequence[str]) -> Self: ...

    def filter(self, where: Where) -> Self: ...

    def to_batches(self) -> pa.RecordBatchReader: ...

    def count(self) -> int: ...

    def row_counts(self) -> Iterator[int]: ...


class LakeDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no type hints
    """The rows of a scan, or of a change feed, without a limit."""

    def __init__(self, scan: FilterableRows, filter: pc.Expression | None = None) -> None:
        """`filter` is a pyarrow expression that every scan of this dataset applies besides its own."""
        assert scan.limit is None, "the rows within a limit must not depend on the engine's filter"
        self._scan = scan
        self._filter = filter

    def __reduce__(self) -> tuple[object, ...]:
        return LakeDataset, (self._scan, self._filter)

    def __repr__(self) -> str:
        return f"LakeDataset({self._scan!r})"

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows."""
        return self._scan.schema

    def scanner(
        self,
        columns: Sequence[str] | dict[str, pc.Expression] | None = None,
        filter: pc.Expression | None = None,
        batch_size: int | None = None,
        **_: Any,
    ) -> ds.Scanner:
        """A scanner, for one use, of the live rows that pass the filter. The filter's columns need not be selected.

        `columns` are names or named expressions. Options that only tune pyarrow's own readers have no effect.
        """
        wanted = _both(self._filter, filter)
        translation = self._translate(wanted)
        read = self._columns_to_read(columns, translation)
        left = None if translation.is_exact else wanted
        batches = self._scan_of(translation, read).to_batches()
        names = None if columns is None or (left is None and columns == batches.schema.names) else columns
        if batch_size is not None:
            batches = pa.RecordBatchReader.from_batches(batches.schema, _resized(batches, batch_size))
        return ds.Scanner.from_batches(batches, columns=names, filter=left)

    def count_rows(self, filter: pc.Expression | None = None, **_: Any) -> int:
        """The number of rows; from metadata alone if no delete and no filter has to check rows."""
        wanted = _both(self._filter, filter)
        translation = self._translate(wanted)
        if translation.is_exact:
            return self._scan_of(translation, None).count()
        scanner = self.scanner(columns=list(translation.columns or self.schema.names)[:1], filter=filter)
        return sum(batch.num_rows for batch in scanner.to_batches())

    def head(self, num_rows: int, columns: Any = None, filter: pc.Expression | None = None, **_: Any) -> pa.Table:
        """The first rows. Reading stops when there are enough."""
        return self.scanner(columns=columns, filter=filter).head(num_rows)

    def take(self, indices: Any, columns: Any = None, filter: pc.Expression | None = None, **_: Any) -> pa.Table:
        """The rows with these indices, counted over all rows that pass the filter. Reads all of them."""
        return self.scanner(columns=columns, filter=filter).to_table().take(indices)

    def filter(self, expression: pc.Expression) -> LakeDataset:
        """The same dataset with one more filter."""
        return LakeDataset(self._scan, _both(self._filter, expression))

    def sort_by(self, sorting: Any, **options: Any) -> ds.InMemoryDataset:
        """The rows sorted, in memory."""
        return ds.InMemoryDataset(self.to_table().sort_by(sorting, **options))

    @property
    def partition_expression(self) -> pc.Expression:
        """Always true: no expression is known to hold for all rows."""
        return pc.scalar(True)

    def get_fragments(self, *_: Any, **__: Any) -> NoReturn:
        """Not supported: rows of a file, without the deletes that apply to it, are not rows of the table."""
        raise UnsupportedFeatureError(
            "the files of this dataset cannot be read individually, because deletes apply to them. Scan the dataset, "
            "or use Scan.plan() to get its files."
        )

    def replace_schema(self, *_: Any, **__: Any) -> NoReturn:
        """Not supported."""
        raise UnsupportedFeatureError(
            "this dataset has the schema of the table, which cannot be replaced. Select or cast columns of the scan."
        )

    def join(self, *_: Any, **__: Any) -> NoReturn:
        """Not supported."""
        raise UnsupportedFeatureError("this dataset cannot be joined in place. Use to_table().join(...), or DuckDB.")

    def join_asof(self, *_: Any, **__: Any) -> NoReturn:
        """Not supported."""
        raise UnsupportedFeatureError(
            "this dataset cannot be joined in place. Use to_table().join_asof(...), or DuckDB."
        )

    def _translate(self, filter: pc.Expression | None) -> Translation:
        if filter is None:
            return Translation(TRUE, is_exact=True, columns=())
        return translate(filter, self._scan.view.schema, arrow_schema(self._scan.view.schema))

    def _scan_of(self, translation: Translation, columns: list[str] | None) -> FilterableRows:
        scan = self._scan if columns is None else self._scan.select(self._scan.columns_of(columns))
        return scan if translation.bound is TRUE else scan.filter(to_expression(translation.bound))

    def _columns_to_read(self, columns: Any, translation: Translation) -> list[str] | None:
        """The names that the query selects, plus the columns that the filter reads if rows are filtered afterwards."""
        names = self.schema.names
        if columns is None or isinstance(columns, dict):
            return None
        selected = list(columns)
        for name in selected:
            if name not in names:
                raise UnknownColumnError(name, names, where="columns")
        if translation.is_exact:
            return selected
        return None if translation.columns is None else list(dict.fromkeys([*selected, *translation.columns]))


def _both(left: pc.Expression | None, right: pc.Expression | None) -> pc.Expression | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right


def _resized(batches: pa.RecordBatchReader, batch_size: int) -> Iterator[pa.RecordBatch]:
    without_offsets = struct_offset_remover(batches.schema)
    for batch in batches:
        for start in range(0, batch.num_rows, batch_size):
            yield without_offsets(batch.slice(start, batch_size))
