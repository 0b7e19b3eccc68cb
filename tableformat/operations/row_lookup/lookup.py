"""Rows by their keys: one row, or the rows for a table of keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.expressions import And, BooleanExpression, EqualTo, Reference
from pyiceberg.schema import Schema
from pyiceberg.types import PrimitiveType

from tableformat.arguments import shown
from tableformat.deletes.matching.comparable_values import comparable, decoded
from tableformat.deletes.matching.key_index import index_keys
from tableformat.deletes.positions import expanded
from tableformat.deletes.spans.spans import SpanArray, spans_of_prefixes
from tableformat.errors import DuplicateKeyError, InvalidArgumentError, InvalidKeyError, UnknownColumnError
from tableformat.filters.literals import literal_of
from tableformat.keys.arrow_columns import array_of_values
from tableformat.keys.internal_values import internal_values_of
from tableformat.keys.key_columns import KeyColumns
from tableformat.keys.table_key import key_field_ids
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.row_lookup.key_rows import among_values, portions, within_bounds
from tableformat.scan.context import ReadContext
from tableformat.scan.planner import plan_scan
from tableformat.scan.reader import read_tables
from tableformat.scan.scan import Scan
from tableformat.write.rows.conform import ConformedRows, table_arrow_schema
from tableformat.write.rows.rows import as_reader

FEW_KEYS: Final = 64
"""Maximum number of keys that are also looked up in Bloom filters."""

_MANY_VALUES: Final = 256
"""From this number of values of the first key column on, the other columns are not used to select files."""


def row_of_key(view: SnapshotView, key: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any] | None:
    """The live row with the key, or None. Raises DuplicateKeyError if there are several."""
    columns = _key_columns(view)
    values = _key_values(columns, key)
    where: BooleanExpression | None = None
    on = KeyColumns.of(columns, [field.field_id for field in columns.fields])
    for (name, value), key_type in zip(values.items(), on.types, strict=True):
        (checked,) = internal_values_of(array_of_values([value], key_type, name=name), key_type)
        equal = EqualTo(term=Reference(name), value=literal_of(checked, key_type))
        where = equal if where is None else And(where, equal)
    rows = Scan(view, where, limit=2).to_arrow().to_pylist()
    if len(rows) > 1:
        raise DuplicateKeyError(
            f"the table has several rows with the key {values}. scan() or get_many() return all of them; upsert() "
            "replaces them with one row."
        )
    return rows[0] if rows else None


def rows_of_keys(view: SnapshotView, keys: Any) -> pa.Table:
    """The live rows with the keys, in the order of the keys. A key that is given twice returns its rows twice.

    Raises UnknownColumnError or InvalidArgumentError if `keys` does not have exactly the key columns, RowsRefusedError
    for values that no key can have.
    """
    columns = _key_columns(view)
    given = as_reader(keys, schema=table_arrow_schema(columns), what="keys")
    _check_names([field.name for field in columns.fields], given.schema.names)
    conformed = ConformedRows(given, columns)
    found = [_rows_of_portion(view, columns, portion) for portion in portions(conformed)]
    return pa.concat_tables(found) if found else _no_rows(view)


def _rows_of_portion(view: SnapshotView, columns: Schema, keys: pa.Table) -> pa.Table:
    types = _on(columns).types
    index, examples, numbers = index_keys(comparables(keys, types), types)
    distinct = keys if len(examples) == len(keys) else keys.take(pa.array(examples))
    tables, found_keys = [_no_rows(view)], [np.empty(0, np.int64)]
    for rows in _rows_of_files(view, columns, distinct):
        found, of_keys = index.find(rows.select(keys.column_names).columns)
        tables.append(rows.take(pa.array(found)))
        found_keys.append(of_keys)
    return pa.concat_tables(tables).take(pa.array(_in_order_of(numbers, np.concatenate(found_keys))))


def _no_rows(view: SnapshotView) -> pa.Table:
    # `Schema.empty_table` does not support a nested type that contains a uuid.
    return pa.Table.from_batches([], arrow_schema(view.schema))


def _in_order_of(wanted: NDArray[np.int64], found: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each wanted number, the positions in `found` that have it, concatenated.

    >>> _in_order_of(np.array([2, 7, 2]), np.array([7, 5, 2, 7])).tolist()
    [2, 0, 3, 2]
    """
    order = np.argsort(found, kind="stable")
    in_order = found[order]
    starts, ends = (np.searchsorted(in_order, wanted, side=side) for side in ("left", "right"))
    return order[expanded(starts, ends)]


def _on(columns: Schema) -> KeyColumns:
    return KeyColumns.of(columns, [field.field_id for field in columns.fields])


def comparables(keys: pa.Table, types: Sequence[PrimitiveType]) -> list[pa.ChunkedArray]:
    return [decoded(comparable(column, kind)) for column, kind in zip(keys.columns, types, strict=True)]


def _rows_of_files(view: SnapshotView, columns: Schema, keys: pa.Table) -> Iterator[pa.Table]:
    """RD-10, FM-27: the live rows of the files that may hold one of the keys, according to their bounds and Bloom
    filters."""
    context = ReadContext.of(view)
    where = among_values(keys) if len(keys) <= FEW_KEYS else within_bounds(keys.column(0), columns.fields[0])
    plan = plan_scan(view, where, context=context.merge, touching=spans_of_keys(columns, keys))
    return read_tables(plan.tasks, context)


def spans_of_keys(columns: Schema, keys: pa.Table) -> SpanArray:
    """Spans that contain the keys. If there are many keys, spans of the values of the first column: these select the
    files nearly as well, in a fraction of the time. Otherwise spans of the keys themselves."""
    column = keys.column(0)
    first = column if isinstance(column.type, pa.BaseExtensionType) else pc.unique(column)
    if len(first) < _MANY_VALUES:
        return spans_of_prefixes(_on(columns), keys)
    leading = KeyColumns.of(columns, [columns.fields[0].field_id])
    return spans_of_prefixes(leading, pa.table([first], names=keys.column_names[:1]))


def _key_columns(view: SnapshotView) -> Schema:
    ids = key_field_ids(view.schema, view.metadata.properties)
    if not ids:
        raise InvalidKeyError("the table has no key for lookups. Set one with set_key([...]), or use scan().")
    return Schema(*(view.schema.find_field(field_id) for field_id in ids))


def _key_values(columns: Schema, key: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    names = [field.name for field in columns.fields]
    if isinstance(key, Mapping):
        _check_names(names, list(key))
        values = {name: key[name] for name in names}
    elif isinstance(key, tuple | list) and len(key) == len(names):
        values = dict(zip(names, key, strict=True))
    else:
        raise InvalidArgumentError(
            f"get requires a value for each key column, as a tuple ({', '.join(names)}) or a mapping by name, not "
            f"{shown(key)}."
        )
    for name, value in values.items():
        if value is None:
            raise InvalidArgumentError(f"key column {name!r} never contains nulls, so no row has this key.")
    return values


def _check_names(names: Sequence[str], given: Sequence[str]) -> None:
    for name in given:
        if name not in names:
            raise UnknownColumnError(name, names, where="the key")
    if len(given) != len(names):
        raise InvalidArgumentError(
            f"a key has the columns {', '.join(names)}, not {', '.join(given)}. Use scan(where=...) to read by some "
            "of them."
        )
