"""The rows of a replacement: the newest message of each prefix, without the markers of empty messages (CP-66).

order_by m           id 1, n 1, m 7 | id 1, n 2, m 7 | id 1, n 1, m 8 | id 2, n null, m 8
rows to write        id 1, n 1
prefixes replaced    1, and 2, whose newest message is empty
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema

from tableformat.errors import InvalidArgumentError
from tableformat.keys.key_columns import leading_columns
from tableformat.write.rows.conform import ConformedRows
from tableformat.write.rows.distinct import PrefixCollector
from tableformat.write.rows.last_per_key import newest_rows, refuse_incomparable
from tableformat.write.rows.numbered_rows import numbered, unused_name
from tableformat.write.rows.rows import as_reader


def order_columns(order_by: str | Sequence[str] | None, prefix: Sequence[str]) -> tuple[str, ...]:
    """CP-66: the columns that decide which message is newer; empty if the caller names none."""
    names = () if order_by is None else (order_by,) if isinstance(order_by, str) else tuple(order_by)
    if order_by is not None and not names:
        raise InvalidArgumentError("order_by must be one or more columns, the most significant one first.")
    equal = [name for name in names if name in prefix or names.count(name) > 1]
    if equal:
        raise InvalidArgumentError(
            f"order_by contains {equal[0]!r}, which is equal in all rows of a prefix ({', '.join(prefix)}) or listed "
            "twice. Pass columns that distinguish older from newer messages."
        )
    return names


def covered_prefixes(cover: Any, prefix: Sequence[str], schema: Schema) -> pa.Table:
    """CP-66: the prefixes that a replacement always deletes, in the table's types."""
    given = as_reader(cover, what="cover").read_all()
    if leading_columns(prefix, given.column_names) != tuple(prefix):
        raise InvalidArgumentError(
            f"cover has the columns ({', '.join(given.column_names)}), but prefixes must have the columns "
            f"{', '.join(prefix)}."
        )
    return in_types_of(schema, given.select(list(prefix)))


class ReplacingRows:
    """The caller's rows. They can be read once."""

    def __init__(
        self,
        rows: pa.RecordBatchReader,
        schema: Schema,
        *,
        key: Sequence[str],
        prefix: Sequence[str],
        order_by: Sequence[str],
        memory_bytes: int,
        fresh: Callable[[pa.RecordBatchReader, str], pa.RecordBatchReader] | None = None,
        order_column: str | None = None,
    ) -> None:
        """`memory_bytes`: memory for the search for the newest rows, if there is one. `fresh`: removes messages that
        are older than the stored ones; its arguments are the newest rows and the name of the column with their indexes
        (CP-69). `order_column`: the order column of the table, which is one of `order_by`."""
        self._schema = schema
        self._prefix = list(prefix)
        self._rest = [name for name in key if name not in prefix]
        self._dropped = [name for name in order_by if name not in {field.name for field in schema.fields}]
        if order_by:
            # Check before the rows are numbered, so that the error lists only the columns that the caller gave.
            refuse_incomparable(rows.schema, (*prefix, *order_by))
        self.numbered_by = unused_name(rows.schema)
        """The name of the column with the rows' indexes in the input, which refusals report."""
        rows = numbered(rows, self.numbered_by)
        self._rows = newest_rows(rows, prefix, order_by, memory_bytes=memory_bytes) if order_by else rows
        self._rows = self._rows if fresh is None else fresh(self._rows, self.numbered_by)
        self._ordered_prefix = [*prefix, *(() if order_column is None else (order_column,))]
        self._markers = PrefixCollector(rows.schema, self._ordered_prefix) if self._has_markers(rows.schema) else None
        self._messages = PrefixCollector(rows.schema, [*prefix, *order_by]) if order_by else None

    def _has_markers(self, given: pa.Schema) -> bool:
        return bool(self._rest) and {*self._rest, *self._prefix} <= {*given.names}

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows to write, without the order columns that the table lacks."""
        schema = pa.schema([field for field in self._rows.schema if field.name not in self._dropped])
        return pa.RecordBatchReader.from_batches(schema, self._to_write())

    def _to_write(self) -> Iterator[pa.RecordBatch]:
        for batch in self._rows:
            if self._messages is not None:
                self._messages.observe(batch)
            rows = batch if self._markers is None else self._without_markers(batch, self._markers)
            yield rows.drop_columns(self._dropped) if self._dropped else rows

    def _without_markers(self, batch: pa.RecordBatch, markers: PrefixCollector) -> pa.RecordBatch:
        is_marker = _is_marker(batch, self._prefix, self._rest)
        if not is_marker.any():
            return batch
        markers.observe(batch.filter(pa.array(is_marker)))
        return batch.filter(pa.array(~is_marker))

    @property
    def marked(self) -> pa.Table | None:
        """The prefixes of markers, in the table's types, followed by the table's order column, if it has one. None if
        there are no markers. Complete after the rows have been read."""
        if self._markers is None or not len(self._markers.prefixes):
            return None
        return in_types_of(self._schema, self._markers.prefixes)

    @property
    def messages(self) -> tuple[pa.Table, pa.Table] | None:
        """The prefixes of all newest rows, markers included, and their values in the order columns. None without
        `order_by`. Complete after the rows have been read."""
        if self._messages is None:
            return None
        found, count = self._messages.prefixes, len(self._prefix)
        orders = found.select(found.column_names[count:])
        numbers = [str(number) for number in range(orders.num_columns)]
        return in_types_of(self._schema, found.select(self._prefix)), orders.rename_columns(numbers)


def in_types_of(schema: Schema, prefixes: pa.Table) -> pa.Table:
    """Key values in the types of the table's schema. Raises RowsRefusedError for a value that does not fit its type."""
    columns = Schema(*(schema.find_field(name) for name in prefixes.column_names))
    return ConformedRows(prefixes.to_reader(), columns).to_reader().read_all()


def _is_marker(batch: pa.RecordBatch, prefix: Sequence[str], rest: Sequence[str]) -> npt.NDArray[np.bool_]:
    """CP-66: which rows have a prefix and null in all other key columns. Stored key columns are never null (FM-4)."""
    is_marker = np.ones(batch.num_rows, np.bool_)
    for names, is_null in ((prefix, False), (rest, True)):
        for name in names:
            is_marker &= np.asarray(pc.is_null(batch.column(name))) == is_null
    return is_marker
