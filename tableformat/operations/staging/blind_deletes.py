"""The pending deletes of the current operation, until they are written or their rows are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyiceberg.schema import Schema

from tableformat.deletes.spans.spans import SpanArray, spans_of_prefixes
from tableformat.errors import InvalidArgumentError
from tableformat.keys.key_columns import KeyColumns
from tableformat.operations.staging.scope import Scope
from tableformat.properties import BLIND_DELETES, BLIND_DELETES_VALUES
from tableformat.write.delete_files.equality_deletes import delete_columns
from tableformat.write.rows.conform import ConformedRows, table_arrow_schema
from tableformat.write.rows.distinct import distinct_rows

_KEYS_MAX: Final = 2_000_000
"""Maximum number of keys of equality deletes in memory. Then they are written, so streams may have any length."""


class BlindDeletes:
    """Pending keys and spans. All keys or spans with the same list of columns become one delete file."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._keys: dict[tuple[tuple[str, ...], str | None], list[pa.Table]] = {}
        self._key_count = 0
        self._spans: dict[tuple[int, ...], list[SpanArray]] = {}
        self.scope: Scope | None = None
        """Collects the deleted ranges if the caller asks for unchanged rows (CP-83)."""

    def __bool__(self) -> bool:
        return bool(self._keys or self._spans)

    @property
    def are_many(self) -> bool:
        """Whether the keys take so much memory that they should be written."""
        return self._key_count >= _KEYS_MAX

    def add_keys(self, keys: pa.Table, *, beside: str | None = None) -> None:
        """Delete the rows whose columns equal a row of `keys`. `beside`: a column of `keys` that is stored but not
        compared."""
        if keys.num_rows:
            self._keys.setdefault((tuple(keys.column_names), beside), []).append(keys)
            self._key_count += int(keys.num_rows)

    def add_spans(self, spans: SpanArray) -> None:
        """Delete the rows that a span covers."""
        if len(spans):
            self._spans.setdefault(spans.key.field_ids, []).append(spans)

    def take_keys(self) -> list[tuple[pa.Table, str | None]]:
        """Remove and return all keys, in the types of their columns: one table for each list of columns, with the name
        of the column that is not compared."""
        taken, self._keys, self._key_count = self._keys, {}, 0
        found = [(self._conformed(tables), beside) for (_, beside), tables in taken.items()]
        if self.scope is not None:
            for keys, beside in found:
                compared = _compared(keys, beside)
                self.scope.add_spans(spans_of_prefixes(self._columns(compared), distinct_rows(compared)))
        return found

    def take_spans(self) -> list[SpanArray]:
        """Remove and return all spans: one array for each list of columns."""
        taken, self._spans = self._spans, {}
        found = [SpanArray.concat(arrays) for arrays in taken.values()]
        if self.scope is not None:
            for spans in found:
                self.scope.add_spans(spans)
        return found

    def take_keys_as_spans(self) -> list[SpanArray]:
        """Remove and return all keys, as spans of one value each."""
        taken = [_compared(keys, beside) for keys, beside in self.take_keys()]
        return [spans_of_prefixes(self._columns(keys), distinct_rows(keys)) for keys in taken]

    def _columns(self, keys: pa.Table) -> KeyColumns:
        return KeyColumns.of(self._schema, [self._schema.find_field(name).field_id for name in keys.column_names])

    def _conformed(self, tables: Sequence[pa.Table]) -> pa.Table:
        """The keys in the types of their columns. Some of the tables already have these types, others have the types
        that the caller gave."""
        columns = delete_columns(self._schema, tables[0].column_names)
        types = table_arrow_schema(columns)
        return pa.concat_tables(
            [pa.Table.from_batches(ConformedRows(each.to_reader(), columns), types) for each in tables]
        )


def _compared(keys: pa.Table, beside: str | None) -> pa.Table:
    """The columns that are compared to find the rows to delete."""
    return keys if beside is None else keys.drop_columns([beside])


def refuse_forbidden(mode: str, allowed: str, *, table: str) -> None:
    """SP-22: raise InvalidArgumentError if the `mode` asks for a delete that the table's owner has forbidden."""
    if BLIND_DELETES_VALUES.index(allowed) > BLIND_DELETES_VALUES.index(mode):
        raise InvalidArgumentError(
            f"mode={mode!r} writes {'a range' if mode == 'range' else 'an equality'} delete, which the owner of "
            f"{table} does not allow: {BLIND_DELETES}={allowed!r}. Nothing was changed. Use mode='scan', or allow it "
            f"with set_properties({{{BLIND_DELETES!r}: {mode!r}}})."
        )
