"""A scan as the dataset that is registered in DuckDB: DuckDB reads the rows as a stream, and rows that are only counted
are not read.

pyarrow's `Scanner` over a Python stream reads ahead on its own thread. If a query stops early (LIMIT, EXISTS) and the
process ends, that thread calls an interpreter that no longer exists: the process aborts or never ends. DuckDB only
needs a reader from a scanner, so this scanner is just a reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from tableformat.errors import UnsupportedFeatureError
from tableformat.metadata.alike_names import refuse_alike_columns
from tableformat.scan.batch_stream import BatchStream
from tableformat.scan.dataset import FilterableRows, LakeDataset

_MARKED_AT_ONCE: Final = 1_000_000
"""Rows of one batch of markers."""


@dataclass(frozen=True, slots=True)
class RowStream:
    """The part of a scanner that DuckDB uses."""

    rows: pa.RecordBatchReader

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, for one use."""
        return self.rows


class DuckDBDataset(LakeDataset):
    """The rows of a scan, or of a change feed, for DuckDB only.

    For a query that needs rows but none of their values, such as `count(*)`, DuckDB asks for the first column of a
    dataset. With `marks_rows` this is the column `marker`, which is null in every row and not stored in any file
    (decision 25). Raises UnsupportedFeatureError for columns that DuckDB cannot distinguish, and for a table without
    columns.
    """

    def __init__(self, scan: FilterableRows, *, marks_rows: bool = False) -> None:
        super().__init__(scan)
        refuse_alike_columns(scan.schema, what="the table")
        if marks_rows and not scan.schema.names:
            raise UnsupportedFeatureError(
                "DuckDB does not support tables without columns. Add a column to read the table with DuckDB."
            )
        self.marker = _free_name(scan.schema.names) if marks_rows else None

    def __reduce__(self) -> tuple[object, ...]:
        return partial(DuckDBDataset, marks_rows=self.marker is not None), (self._scan,)

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows. The marker, if any, comes first."""
        rows = super().schema
        return rows if self.marker is None else rows.insert(0, pa.field(self.marker, pa.bool_()))

    def scanner(  # type: ignore[override]  # What DuckDB calls and uses, and no more.
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None
    ) -> RowStream:
        """The live rows that pass the filter. The filter's columns need not be selected."""
        asked = self.schema.names if columns is None else list(columns)
        schema = pa.schema([self.schema.field(name) for name in asked])
        translation = self._translate(filter)
        names = [name for name in asked if name != self.marker]
        if translation.is_exact and not names:
            counts = self._scan_of(translation, None).row_counts()
            return _stream(schema, (batch for row_count in counts for batch in _marked(schema, row_count)))
        # A batch without columns has no length, so all columns are read if the filter names none.
        scan = self._scan_of(translation, self._columns_to_read(names, translation) or None)
        if translation.is_exact and names == asked:
            return RowStream(scan.to_batches())
        return _stream(schema, self._picked(scan, schema, None if translation.is_exact else filter))

    def _picked(
        self, scan: FilterableRows, schema: pa.Schema, filter: pc.Expression | None
    ) -> Iterator[pa.RecordBatch]:
        for batch in scan.to_batches():
            # Filter as a table: PyArrow cannot make an empty batch with UUIDs inside of structs.
            for rows in [batch] if filter is None else pa.Table.from_batches([batch]).filter(filter).to_batches():
                columns = [
                    pa.nulls(rows.num_rows, field.type) if field.name == self.marker else rows.column(field.name)
                    for field in schema
                ]
                if rows.num_rows:
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _stream(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> RowStream:
    return RowStream(pa.RecordBatchReader.from_batches(schema, BatchStream(batches)))


def _marked(schema: pa.Schema, row_count: int) -> Iterator[pa.RecordBatch]:
    """`row_count` rows with only the marker column."""
    for start in range(0, row_count, _MARKED_AT_ONCE):
        markers = pa.nulls(min(_MARKED_AT_ONCE, row_count - start), pa.bool_())
        yield pa.RecordBatch.from_arrays([markers], schema=schema)


def _free_name(names: Iterable[str]) -> str:
    """A name that no column has, ignoring case, because DuckDB ignores it."""
    taken = {name.casefold() for name in names}
    return next(name for number in count() if (name := f"__row{number}") not in taken)
