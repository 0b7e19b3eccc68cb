"""Rows by their keys: one, or those of a table of keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import And, BooleanExpression, EqualTo, Reference
from pyiceberg.expressions.literals import literal
from pyiceberg.schema import Schema

from tableformat.deletes.spans.coverage import Coverage, classify_many
from tableformat.deletes.spans.spans import sort_and_merge, spans_of_prefixes
from tableformat.errors import DuplicateKeyError, InvalidArgumentError, InvalidKeyError, UnknownColumnError
from tableformat.keys.arrow_columns import array_of_values
from tableformat.keys.key_columns import KeyColumns
from tableformat.keys.key_matches import key_matches, with_values_of
from tableformat.keys.table_key import key_field_ids
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.finding.key_rows import portions, within_bounds
from tableformat.scan.context import ReadContext
from tableformat.scan.planner import plan_scan
from tableformat.scan.reader import read_tables
from tableformat.scan.scan import Scan
from tableformat.write.rows.conform import ConformedRows, table_arrow_schema
from tableformat.write.rows.distinct import distinct_rows
from tableformat.write.rows.rows import as_reader


def row_of_key(view: SnapshotView, key: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any] | None:
    """The live row with the key; None where there is none. DuplicateKeyError where there are several."""
    columns = _key_columns(view)
    values = _key_values(columns, key)
    where: BooleanExpression | None = None
    on = KeyColumns.of(columns, [field.field_id for field in columns.fields])
    for (name, value), key_type in zip(values.items(), on.types, strict=True):
        checked = array_of_values([value], key_type, name=name)[0].as_py()
        equal = EqualTo(term=Reference(name), value=literal(checked))
        where = equal if where is None else And(where, equal)
    rows = Scan(view, where, limit=2).to_arrow().to_pylist()
    if len(rows) > 1:
        raise DuplicateKeyError(
            f"the table has several rows with the key {values}. scan() or get_many() give all of them; upsert() puts "
            "one row in their place."
        )
    return rows[0] if rows else None


def rows_of_keys(view: SnapshotView, keys: Any) -> pa.Table:
    """The live rows with the keys, in the order of these; a key that is given twice finds its rows twice.

    UnknownColumnError or InvalidArgumentError where `keys` has other columns than those of the key; RowsRefusedError
    for values that no key can have.
    """
    columns = _key_columns(view)
    given = as_reader(keys, schema=table_arrow_schema(columns), what="keys")
    _check_names([field.name for field in columns.fields], given.schema.names)
    conformed = ConformedRows(given, columns)
    found = [_rows_of_portion(view, columns, portion) for portion in portions(conformed)]
    return pa.concat_tables(found) if found else arrow_schema(view.schema).empty_table()


def _rows_of_portion(view: SnapshotView, columns: Schema, keys: pa.Table) -> pa.Table:
    names = keys.column_names
    found = [with_values_of(rows, keys) for rows in _rows_of_files(view, columns, keys)]
    rows = pa.concat_tables(found) if found else arrow_schema(view.schema).empty_table()
    return rows.take(pa.array(key_matches(keys, rows.select(names))[1]))


def _rows_of_files(view: SnapshotView, columns: Schema, keys: pa.Table) -> Iterator[pa.Table]:
    """The live rows of the files that may hold one of the keys by their bounds, in sorted spans of one key each."""
    on = KeyColumns.of(columns, [field.field_id for field in columns.fields])
    spans = sort_and_merge(spans_of_prefixes(on, distinct_rows(keys))).with_sequence_number(view.sequence_number + 1)
    context = ReadContext.of(view)
    first = keys.column_names[0]
    tasks = plan_scan(view, within_bounds(keys.column(first), first), context=context.merge).tasks
    held = classify_many(spans, [task.data_file for task in tasks])
    wanted = [task for task, (coverage, _) in zip(tasks, held, strict=True) if coverage is not Coverage.CLEAN]
    return read_tables(wanted, context)


def _key_columns(view: SnapshotView) -> Schema:
    ids = key_field_ids(view.schema, view.metadata.properties)
    if not ids:
        raise InvalidKeyError("the table has no key to look rows up by; name one with set_key([...]), or use scan().")
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
            f"get takes a value for each key column, as a tuple ({', '.join(names)}) or a mapping of their names, not "
            f"{key!r:.80}."
        )
    for name, value in values.items():
        if value is None:
            raise InvalidArgumentError(f"key column {name!r} has no nulls, so no row has that key.")
    return values


def _check_names(names: Sequence[str], given: Sequence[str]) -> None:
    for name in given:
        if name not in names:
            raise UnknownColumnError(name, names, where="the key")
    if len(given) != len(names):
        raise InvalidArgumentError(
            f"a key has the columns {', '.join(names)}, not {', '.join(given)}. scan(where=...) reads by some of them."
        )
