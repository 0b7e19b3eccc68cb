"""The operations on a table of random columns: each is called, and returns the expected rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import pyarrow as pa
from evolving_tables import EvolvingTable, arrow_of
from evolving_values import (
    KnownRow,
    Rows,
    are_alike,
    quoted,
    rows_in,
    value_at,
    with_bytes,
    without_extension,
)
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Operation
from pyiceberg.types import DoubleType, FloatType, IcebergType, NestedField, PrimitiveType, StructType

import tableformat as tf
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.delete_scope import check_delete_columns
from tableformat.commit.transaction import commit_change
from tableformat.deletes.rules import is_unpartitioned
from tableformat.errors import DuplicateKeyError
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.testing.key_order import is_covered, sort_keys
from tableformat.testing.raw_files import foreign_data_file, foreign_equality_delete
from tableformat.testing.replacing import replaced
from tableformat.write.context import WriteContext

Verb: TypeAlias = Callable[[EvolvingTable, tf.Table, Rows], Rows]


def append(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    schema = table.metadata.schema()
    new = known.new_rows(schema, before)
    known.log.append(f"append {rows_in(new, schema)}")
    table.append(arrow_of(table, new))
    return before + new


def append_unless_present(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    """Of several rows with the same key, the first one is appended."""
    schema, key = table.metadata.schema(), key_columns(table)
    given = known.new_rows(schema, before)
    new: list[KnownRow] = []
    for row in given:
        if not any(are_alike(row.values, other.values, key) for other in (*before, *new)):
            new.append(row)
    fails = known.random.random() < 0.5
    known.log.append(f"append unless present, fails {fails}: {rows_in(given, schema)}")
    try:
        table.append(arrow_of(table, given), on_duplicate="error" if fails else "ignore")
    except DuplicateKeyError:
        if not fails or len(new) == len(given):
            raise
        return before
    assert not fails or len(new) == len(given), "a key that is there was added again"
    return before + tuple(new)


def delete_rows(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    chosen = _some(known, _comparable(table.metadata.schema()), 2)
    found = known.random.choice(before).values
    names = [each.name for each in chosen]
    known.log.append(f"delete_rows {names} {[value_at(found, (each,)) for each in chosen]}")
    table.delete_rows(arrow_of(table, (KnownRow(0, found),), names))
    return tuple(row for row in before if not are_alike(row.values, found, chosen))


def delete_range(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    columns = [each for each in table.metadata.schema().fields if isinstance(each.field_type, PrimitiveType)]
    pick, chosen = known.random, _some(known, columns, 2)
    bounds = [tuple(value_at(row.values, (each,)) for each in chosen) for row in pick.choices(before, k=2)]
    lower, upper = (each if pick.random() < 0.8 else None for each in sorted(bounds, key=sort_keys))
    names = [each.name for each in chosen]
    mode = pick.choice(("auto", "auto", "scan"))
    known.log.append(f"delete_range {names} {lower} {upper} {mode}")
    table.delete_range(lower=lower, upper=upper, on=names, mode=mode, everything=lower is None and upper is None)
    return tuple(
        row for row in before if not is_covered(tuple(value_at(row.values, (each,)) for each in chosen), lower, upper)
    )


def replace_interval(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    schema, pick = table.metadata.schema(), known.random
    columns = [each for each in schema.fields if isinstance(each.field_type, PrimitiveType)]
    chosen = _some(known, columns, 2)
    bounds = [tuple(value_at(row.values, (each,)) for each in chosen) for row in pick.choices(before, k=2)]
    lower, upper = (each if pick.random() < 0.8 else None for each in sorted(bounds, key=sort_keys))

    def is_inside(row: KnownRow) -> bool:
        return is_covered(tuple(value_at(row.values, (each,)) for each in chosen), lower, upper)

    new = tuple(filter(is_inside, known.new_rows(schema, before)))
    names, blind = [each.name for each in chosen], pick.random() < 0.3
    known.log.append(f"replace_interval {names} {lower} {upper} blind {blind} {rows_in(new, schema)}")
    everything = lower is None and upper is None
    table.replace_interval(arrow_of(table, new), on=names, lower=lower, upper=upper, everything=everything, blind=blind)
    return tuple(row for row in before if not is_inside(row)) + new


def delete_where(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    where = known.condition(table.metadata.schema(), before)
    mode = known.random.choice(("auto", "scan"))
    known.log.append(f"delete {where.sql} {mode}")
    table.delete(where.sql, mode=mode)
    return tuple(row for row in before if not where.matches(row.values))


def overwrite(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    schema = table.metadata.schema()
    where, new = known.condition(schema, before), known.new_rows(schema, before)
    known.log.append(f"overwrite {where.sql} {rows_in(new, schema)}")
    table.overwrite(arrow_of(table, new), where=where.sql, allow_outside=True)
    return tuple(row for row in before if not where.matches(row.values)) + new


def update(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    """A value, or another column of the same type."""
    schema, pick = table.metadata.schema(), known.random
    columns = [
        each for each in schema.fields if isinstance(each.field_type, PrimitiveType) and each.name not in table.key
    ]
    if not columns:
        return append(known, table, before)
    column, where = pick.choice(columns), known.condition(schema, before)
    alike = [each for each in schema.fields if each.field_type == column.field_type and each is not column]
    if alike and pick.random() < 0.5:
        other = pick.choice(alike)
        known.log.append(f"update {where.sql} {column.name} = {other.name}")
        table.update(where.sql, set={column.name: quoted((other,))})
        return _changed(known, before, where.matches, column, lambda values: value_at(values, (other,)))
    value = known.value(column.field_type)
    known.log.append(f"update {where.sql} {column.name} = {value!r}")
    text = f"'{value.replace(chr(39), chr(39) * 2)}'" if isinstance(value, str) else value
    table.update(where.sql, set={column.name: text})
    return _changed(known, before, where.matches, column, lambda _: value)


def merge(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    """Merge on one column, whose values are distinct in the source; null equals nothing."""
    schema, pick = table.metadata.schema(), known.random
    column = pick.choice(_comparable(schema))
    given: dict[Any, KnownRow] = {}
    for row in known.new_rows(schema, before):
        given.setdefault(value_at(row.values, (column,)), row)
    what = pick.choice(("delete", "update", "nothing"))
    known.log.append(f"merge on {column.name}, {what}: {rows_in(tuple(given.values()), schema)}")
    on = f"target.{quoted((column,))} = source.{quoted((column,))}"
    statement = table.merge(arrow_of(table, tuple(given.values())), on=on)
    key = {each.field_id for each in key_columns(table)}
    if what == "delete":
        statement = statement.when_matched_delete()
    if what == "update":
        statement = statement.when_matched_update_all(except_cols=list(table.key))
    statement.when_not_matched_insert_all().execute()
    there = {value_at(row.values, (column,)) for row in before} - {None}
    given_values = given.keys() - {None}
    after = []
    for row in before:
        value = value_at(row.values, (column,))
        if value not in given_values or what == "nothing":
            after.append(row)
        elif what == "update":
            source = given[value].values
            after.append(known.numbered({**source, **{name: row.values[name] for name in key & row.values.keys()}}))
    return (*after, *(row for value, row in given.items() if value not in there))


def delete_prefix(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    chosen = key_columns(table)[: known.random.choice((1, 2))]
    wanted = known.random.choice(before).values
    prefix = {each.name: value_at(wanted, (each,)) for each in chosen}
    known.log.append(f"delete_prefix {prefix}")
    table.delete_prefix(prefix)
    return tuple(row for row in before if not are_alike(row.values, wanted, chosen))


def replace(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    schema, chosen = table.metadata.schema(), key_columns(table)[: known.random.choice((1, 2))]
    new = last_of_each(known.new_rows(schema, before), key_columns(table))
    known.log.append(f"replace {[each.name for each in chosen]} {rows_in(new, schema)}")
    table.replace(arrow_of(table, new), prefix=[each.name for each in chosen])
    return _without(before, new, chosen) + new


def upsert(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    schema, key = table.metadata.schema(), key_columns(table)
    new = last_of_each(known.new_rows(schema, before), key)
    known.log.append(f"upsert {rows_in(new, schema)}")
    table.upsert(arrow_of(table, new))
    return _without(before, new, key) + new


def upsert_some_columns(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    """Columns that are not given keep their values; for a key that is stored twice, there is no value to keep."""
    schema, key = table.metadata.schema(), key_columns(table)
    new = last_of_each(known.new_rows(schema, before), key)
    kept = [each for each in schema.fields if not each.required and known.random.random() < 0.5]
    names = [each.name for each in schema.fields if each not in kept]
    stored = [[row for row in before if are_alike(row.values, each.values, key)] for each in new]
    if not kept or any(len(each) > 1 for each in stored):
        return upsert(known, table, before)
    known.log.append(f"upsert of {names} {rows_in(new, schema)}")
    table.upsert(arrow_of(table, new, names), missing="keep")
    written = []
    for row, old in zip(new, stored, strict=True):
        source = old[0].values if old else {}
        values = {each.field_id: value_at(source, (each,)) if old else _written_default(each) for each in kept}
        written.append(KnownRow(row.number, {**row.values, **values}))
    return _without(before, new, key) + tuple(written)


def apply_changes(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    """The last event of each key, by position."""
    schema, key = table.metadata.schema(), key_columns(table)
    given = known.new_rows(schema, before)
    kinds = [known.random.choice("IUD") for _ in given]
    known.log.append(f"apply_changes {kinds} {rows_in(given, schema)}")
    table.apply_changes(arrow_of(table, given).append_column("_op", pa.array(kinds)), order_by=None)
    last = last_of_each(given, key)
    kind_of = {row.number: kind for row, kind in zip(given, kinds, strict=True)}
    return _without(before, last, key) + tuple(row for row in last if kind_of[row.number] != "D")


def foreign_append(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    """A file of another writer, in the current schema or in an older one."""
    schema, current = known.random.choice(table.metadata.schemas), table.metadata.schema()
    new = tuple(KnownRow(row.number, _only(row.values, schema)) for row in known.new_rows(schema, before))
    lacks_key = any(value_at(row.values, (each,)) is None for row in new for each in current.fields if each.required)
    has_inner_uuid = any(
        without_extension(each.type) != each.type for each in arrow_schema(schema) if _has_parts(each.type)
    )
    if table.metadata.spec().fields or has_inner_uuid or lacks_key:
        return append(known, table, before)
    known.log.append(f"foreign append {rows_in(new, schema)} in schema {schema.schema_id}")
    context = WriteContext.of(table.metadata, table.iceberg.io)
    has_metrics = known.random.random() < 0.5
    added = foreign_data_file(context, with_bytes(rows_in(new, schema)), schema, has_metrics=has_metrics)
    _commit(table, added_data_files=(added,))
    return before + new


def foreign_equality(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    """An equality delete of another writer, by columns of the current schema or of an older one."""
    global_specs = [spec_id for spec_id, spec in table.metadata.specs().items() if is_unpartitioned(spec)]
    if not global_specs:
        # It was forgotten by an expiry.
        return append(known, table, before)
    schema = known.random.choice(table.metadata.schemas)
    chosen = _some(known, _comparable(schema), 2)
    found = known.random.choice(before).values
    row = {each.name: with_bytes(value_at(found, (each,))) for each in chosen}
    known.log.append(f"foreign equality {row} in schema {schema.schema_id}")
    deleted = foreign_equality_delete(
        WriteContext.of(table.metadata, table.iceberg.io),
        [row],
        schema,
        equality_columns=list(row),
        spec_id=global_specs[0],
        has_metrics=known.random.random() < 0.5,
    )
    # CP-35 is a rule for our deletes; others write what they like.
    with replaced(check_delete_columns, lambda *_: None):
        _commit(table, added_delete_files=(deleted,))
    return tuple(row for row in before if not are_alike(row.values, found, chosen))


ALWAYS: Final[tuple[Verb, ...]] = (append, append, foreign_append)
WITH_ROWS: Final[tuple[Verb, ...]] = (
    *(delete_rows, delete_range, delete_where, overwrite, update, merge, foreign_equality, delete_rows, delete_range),
    replace_interval,
)
WITH_KEY: Final[tuple[Verb, ...]] = (append_unless_present, upsert, upsert_some_columns, apply_changes)
WITH_KEY_AND_ROWS: Final[tuple[Verb, ...]] = (delete_prefix, replace)


def verbs_for(table: tf.Table, before: Rows) -> list[Verb]:
    found = list(ALWAYS)
    if before:
        found += WITH_ROWS
    if table.key:
        found += WITH_KEY
    if before and table.key:
        found += WITH_KEY_AND_ROWS
    return found


def _commit(table: tf.Table, **files: Any) -> None:
    """Commit files of another writer in a separate snapshot."""
    head = table.view.snapshot
    change = TableChange(
        operation=Operation.OVERWRITE,
        kind=ChangeKind.ROW_DELTA,
        planned_snapshot_id=head.snapshot_id if head else None,
        planned_sequence_number=(head.sequence_number or 0) if head else 0,
        **files,
    )
    commit_change(table.iceberg, change, ref=table.branch)


def key_columns(table: tf.Table) -> list[NestedField]:
    return [table.metadata.schema().find_field(name) for name in table.key]


def _comparable(schema: Schema) -> list[NestedField]:
    """DA-5: floating-point columns cannot be columns of an equality delete."""
    return [
        each
        for each in schema.fields
        if isinstance(each.field_type, PrimitiveType) and not isinstance(each.field_type, FloatType | DoubleType)
    ]


def _some(known: EvolvingTable, columns: list[NestedField], at_most: int) -> list[NestedField]:
    return known.random.sample(columns, min(len(columns), known.random.randint(1, at_most)))


def _changed(
    known: EvolvingTable, rows: Rows, matches: Callable[[Any], bool], column: NestedField, new: Callable[[Any], Any]
) -> Rows:
    return tuple(
        known.numbered({**row.values, column.field_id: new(row.values)}) if matches(row.values) else row for row in rows
    )


def _without(rows: Rows, others: Iterable[KnownRow], columns: list[NestedField]) -> Rows:
    gone = list(others)
    return tuple(row for row in rows if not any(are_alike(row.values, each.values, columns) for each in gone))


def last_of_each(rows: Rows, key: list[NestedField]) -> Rows:
    return tuple(
        row
        for place, row in enumerate(rows)
        if not any(are_alike(row.values, other.values, key) for other in rows[place + 1 :])
    )


def _written_default(column: NestedField) -> Any:
    return column.write_default


def _only(values: Any, schema: Schema) -> Any:
    """Without the fields that a schema has not."""
    return _only_of(values, schema.as_struct())


def _only_of(value: Any, of: IcebergType) -> Any:
    if value is None or not isinstance(of, StructType):
        return value
    return {each.field_id: _only_of(value.get(each.field_id), each.field_type) for each in of.fields}


def _has_parts(of: pa.DataType) -> bool:
    return bool(pa.types.is_nested(of))
