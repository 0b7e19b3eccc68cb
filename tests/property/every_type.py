"""Tables with columns of every type, nested two deep; every operation, job and reader gives the rows of a
dictionary."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from evolving_values import COLUMN_TYPES, NANO_TYPES, values_of
from hypothesis import strategies as st
from new_lakes import new_lake
from pyiceberg.schema import Schema
from pyiceberg.types import (
    IcebergType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    UnknownType,
)
from typer.testing import CliRunner

import tableformat as tf
from tableformat.cli.main import app
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.parquet.array_forms import as_type, storage_of
from tableformat.testing.json_values import schema_from_json

Row = dict[str, Any]
_LISTED: Final = 4


def column_types(version: int, depth: int = 2) -> st.SearchStrategy[IcebergType]:
    """Column types; field ids are assigned when the table is created."""
    names = (*COLUMN_TYPES, *NANO_TYPES) if version >= 3 else COLUMN_TYPES
    primitives = st.sampled_from(names).map(_primitive)
    if depth == 0:
        return primitives
    inner = column_types(version, depth - 1)
    structs = st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=2).map(_struct)
    lists = st.tuples(inner, st.booleans()).map(lambda pair: ListType(0, pair[0], pair[1]))
    maps = st.tuples(primitives, inner, st.booleans()).map(lambda of: MapType(0, of[0], 0, of[1], of[2]))
    return st.one_of(primitives, structs, lists, maps)


def schemas(version: int) -> st.SearchStrategy[Schema]:
    columns = st.lists(st.tuples(column_types(version), st.booleans()), min_size=1, max_size=3)
    unknown = st.booleans() if version >= 3 else st.just(False)
    return st.tuples(columns, unknown).map(_schema)


def widest_schema(version: int) -> Schema:
    """A column of each type, and each of the nested ones with required and with optional parts."""
    names = (*COLUMN_TYPES, *NANO_TYPES) if version >= 3 else COLUMN_TYPES
    primitives = [_primitive(name) for name in names]
    whole = [_struct([(kind, required) for kind in primitives]) for required in (True, False)]
    small = _struct([(primitives[1], True), (primitives[8], False)])
    lists = [ListType(0, primitives[8], True), ListType(0, primitives[8], False), ListType(0, small, True)]
    maps = [MapType(0, key, 0, small, True) for key in primitives[1::5]]
    deep = [_struct([(small, True), (lists[-1], True), (maps[0], True)]), ListType(0, maps[0], True)]
    columns = [(kind, position % 5 == 4) for position, kind in enumerate((*primitives, *whole, *lists, *maps, *deep))]
    return _schema((columns, version >= 3))


def _primitive(name: str) -> IcebergType:
    return schema_from_json({"x": name}).fields[0].field_type


def _struct(parts: list[tuple[IcebergType, bool]]) -> StructType:
    return StructType(*(NestedField(0, f"f{i}", kind, required=required) for i, (kind, required) in enumerate(parts)))


def _schema(of: tuple[list[tuple[IcebergType, bool]], bool]) -> Schema:
    columns, has_unknown = of
    fields = [NestedField(i + 2, f"c{i}", kind, required=required) for i, (kind, required) in enumerate(columns)]
    if has_unknown:
        fields.append(NestedField(99, "u", UnknownType(), required=False))
    return Schema(NestedField(1, "id", LongType(), required=True), *fields)


def stored_type(kind: IcebergType) -> pa.DataType:
    """The Arrow type with plain bytes instead of uuids."""
    return storage_of(arrow_schema(Schema(NestedField(1, "x", kind))).field("x").type)


def value_of(kind: IcebergType, chance: random.Random, *, required: bool) -> Any:
    """A random value as `pa.array` takes it in the stored type."""
    if isinstance(kind, UnknownType) or (not required and chance.random() < 0.3):
        return None
    match kind:
        case StructType():
            return {each.name: value_of(each.field_type, chance, required=each.required) for each in kind.fields}
        case ListType():
            count = chance.randrange(_LISTED)
            return [value_of(kind.element_type, chance, required=kind.element_required) for _ in range(count)]
        case MapType():
            assert isinstance(kind.key_type, PrimitiveType)
            keys = {repr(key): key for key in chance.choices(_values(kind.key_type), k=chance.randrange(_LISTED))}
            return [(key, value_of(kind.value_type, chance, required=kind.value_required)) for key in keys.values()]
    assert isinstance(kind, PrimitiveType)
    return chance.choice(_values(kind))


def _values(kind: PrimitiveType) -> list[Any]:
    return [value.bytes if isinstance(value, UUID) else value for value in values_of(kind)]


@dataclass
class TypedTable:
    """A table of the schema, and its rows by id."""

    table: tf.Table
    catalog: tf.Catalog
    directory: Path
    chance: random.Random
    rows: dict[int, Row] = field(default_factory=dict)
    last_id: int = 0

    @property
    def kinds(self) -> dict[str, NestedField]:
        return {each.name: each for each in self.table.view.schema.fields if each.name != "id"}

    def new_rows(self, count: int, ids: list[int] | None = None) -> list[Row]:
        if ids is None:
            ids = list(range(self.last_id + 1, self.last_id + 1 + count))
            self.last_id += count
        return [
            {"id": each, **{n: value_of(f.field_type, self.chance, required=f.required) for n, f in self.kinds.items()}}
            for each in ids
        ]

    def arrow(self, rows: list[Row], names: list[str] | None = None) -> pa.Table:
        kinds = {"id": pa.int64(), **{name: stored_type(each.field_type) for name, each in self.kinds.items()}}
        chosen = kinds if names is None else {name: kinds[name] for name in names}
        fields = [pa.field(name, kind) for name, kind in chosen.items()]
        columns = [pa.array([row[each.name] for row in rows], _optional(each.type)) for each in fields]
        return pa.table(columns, names=list(chosen))

    def keep(self, rows: list[Row]) -> None:
        self.rows |= {row["id"]: row for row in rows}

    def optional(self) -> list[str]:
        return [name for name, each in self.kinds.items() if not each.required]

    def required(self) -> list[str]:
        return [name for name, each in self.kinds.items() if each.required]

    def check(self, found: pa.Table | None = None) -> None:
        """Check that the rows equal the model, value by value."""
        found = self.table.refresh().scan().to_arrow() if found is None else found
        found.validate(full=True)
        kinds = {"id": pa.int64(), **{name: stored_type(each.field_type) for name, each in self.kinds.items()}}
        order = sorted(range(len(found)), key=found["id"].to_pylist().__getitem__)
        wanted = self.arrow([self.rows[each] for each in sorted(self.rows)])
        assert found["id"].take(pa.array(order, pa.int64())).to_pylist() == wanted["id"].to_pylist()
        for name, kind in kinds.items():
            column = _one(found[name])
            stored = as_type(column, _optional(kind)).take(pa.array(order, pa.int64()))
            assert repr(stored.to_pylist()) == repr(wanted[name].to_pylist()), name


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])


def _optional(kind: pa.DataType) -> pa.DataType:
    """The type without required parts, because the rows of callers seldom declare them."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _optional(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _optional(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_optional(kind.key_type), _optional(kind.item_type))
    return kind


def typed_table(directory: str, schema: Schema, version: int, seed: int) -> TypedTable:
    catalog = new_lake(f"{directory}/lake")
    table = catalog.create_table("db.t", schema, key=["id"], properties={"format-version": str(version)})
    return TypedTable(table, catalog, Path(directory), random.Random(seed))


def _append(t: TypedTable) -> None:
    rows = t.new_rows(5)
    t.table.append(t.arrow(rows))
    t.keep(rows)


def _append_some(t: TypedTable) -> None:
    rows = [{**row, **dict.fromkeys(t.optional())} for row in t.new_rows(2)]
    t.table.append(t.arrow(rows, ["id", *t.required()]))
    t.keep(rows)


def _append_dicts(t: TypedTable) -> None:
    rows = t.new_rows(2)
    t.table.append(t.arrow(rows).to_pylist())
    t.keep(rows)


def _overwrite(t: TypedTable) -> None:
    gone, last = min(t.rows), t.last_id
    rows = t.new_rows(2)
    t.table.overwrite(t.arrow(rows), where=f"id = {gone} OR id > {last}")
    del t.rows[gone]
    t.keep(rows)


def _upsert(t: TypedTable) -> None:
    rows = t.new_rows(2, [max(t.rows), t.last_id + 1])
    t.last_id += 1
    t.table.upsert(t.arrow(rows))
    t.keep(rows)


def _upsert_keep(t: TypedTable) -> None:
    rows = t.new_rows(2, sorted(t.rows)[:2])
    rows = [{**row, **{name: t.rows[row["id"]][name] for name in t.optional()}} for row in rows]
    t.table.upsert(t.arrow(rows, ["id", *t.required()]), missing="keep")
    t.keep(rows)


def _upsert_null(t: TypedTable) -> None:
    rows = [{**row, **dict.fromkeys(t.optional())} for row in t.new_rows(1, [max(t.rows)])]
    t.table.upsert(t.arrow(rows, ["id", *t.required()]), missing="null")
    t.keep(rows)


def _replace(t: TypedTable) -> None:
    rows = t.new_rows(1, [min(t.rows)])
    t.table.replace(t.arrow(rows), prefix=["id"])
    t.keep(rows)


def _replace_interval(t: TypedTable) -> None:
    rows = t.new_rows(1, [min(t.rows)])
    t.table.replace_interval(t.arrow(rows), on=["id"], lower=min(t.rows), upper=min(t.rows) + 1)
    t.keep(rows)


def _merge(t: TypedTable) -> None:
    rows = t.new_rows(2, [max(t.rows), t.last_id + 1])
    t.last_id += 1
    merge = t.table.merge(t.arrow(rows), on=["id"]).when_matched_update_all().when_not_matched_insert_all()
    merge.execute()
    t.keep(rows)


def _merge_some(t: TypedTable) -> None:
    rows = [{**row, **dict.fromkeys(t.optional())} for row in t.new_rows(1)]
    names = ["id", *t.required()]
    merge = t.table.merge(t.arrow(rows, names), on=["id"])
    merge.when_not_matched_insert({name: f'source."{name}"' for name in names}).execute()
    t.keep(rows)


def _update(t: TypedTable) -> None:
    nulls = dict.fromkeys(t.optional())
    if nulls:
        t.table.update(f"id = {max(t.rows)}", set=nulls)
        t.rows[max(t.rows)] |= nulls


def _apply_changes(t: TypedTable) -> None:
    rows = t.new_rows(2, [min(t.rows), max(t.rows)])
    t.table.apply_changes(t.arrow(rows).append_column("_op", pa.array(["D", "U"])), order_by=None)
    t.keep(rows)
    del t.rows[min(t.rows)]


def _delete_rows(t: TypedTable) -> None:
    gone = max(t.rows)
    t.table.delete_rows(pa.table({"id": [gone]}))
    del t.rows[gone]


def _delete_nulls(t: TypedTable) -> None:
    for name in t.optional()[:1]:
        t.table.delete(f'"{name}" IS NULL AND id = {max(t.rows)}')
        if t.rows[max(t.rows)][name] is None:
            del t.rows[max(t.rows)]


def _delete_carrying(t: TypedTable) -> None:
    t.table.set_properties({"write.delete.mode": "copy-on-write"})
    gone = min(t.rows)
    t.table.delete(f"id = {gone}", mode="scan")
    del t.rows[gone]


def _new_write(t: TypedTable) -> None:
    rows = t.new_rows(2)
    write = t.table.new_write()
    t.table.commit(write, [write.write(t.arrow(rows))])
    t.keep(rows)


def _add_files(t: TypedTable) -> None:
    rows = t.new_rows(2)
    columns = t.arrow(rows)
    if "u" in columns.column_names:
        columns = columns.drop_columns(["u"])
    path = t.directory / f"{t.last_id}.parquet"
    fields = [t.table.schema.field(name) for name in columns.column_names]
    whole = [as_type(_one(columns[each.name]), storage_of(each.type)) for each in fields]
    wrapped = [
        pa.ExtensionArray.from_storage(each.type, array) if isinstance(each.type, pa.BaseExtensionType) else array
        for each, array in zip(fields, whole, strict=True)
    ]
    if any(_has_inner_uuid(each.type) for each in fields):
        return
    pq.write_table(pa.Table.from_arrays(wrapped, schema=pa.schema(fields)), path)
    t.table.add_files([str(path)])
    t.keep(rows)


def _has_inner_uuid(kind: pa.DataType) -> bool:
    inner = [kind.field(index).type for index in range(kind.num_fields)]
    return any(each == pa.uuid() or _has_inner_uuid(each) for each in inner)


def _add_struct(t: TypedTable) -> None:
    """Add a column that older files lack, with a required field."""
    with t.table.update_schema() as update:
        update.add_column("late", StructType(NestedField(90, "f", LongType(), required=True)))
    for row in t.rows.values():
        row["late"] = None


def _duckdb(t: TypedTable) -> None:
    with duckdb.connect() as connection:
        tf.duckdb.attach(connection, t.catalog, name="lake")
        found = connection.sql("SELECT * FROM lake.db.t").to_arrow_table()
        assert sorted(found["id"].to_pylist()) == sorted(t.rows)
        if _is_same_in_duckdb(t):
            t.check(found)
        rows = [{**row, **dict.fromkeys(t.optional())} for row in t.new_rows(1)]
        connection.register("given", t.arrow(rows, ["id", *t.required()]))
        tf.duckdb.sql(connection, "INSERT INTO lake.db.t BY NAME SELECT * FROM given")
        t.keep(rows)
        gone = min(t.rows)
        tf.duckdb.sql(connection, f"DELETE FROM lake.db.t WHERE id = {gone}")
        del t.rows[gone]


def _is_same_in_duckdb(t: TypedTable) -> bool:
    """DuckDB has uuids as text, nanoseconds with a zone as microseconds, and no fixed bytes."""
    return not any(word in str(t.table.view.schema) for word in ("uuid", "_ns", "fixed", "map<", "unknown"))


def _polars(t: TypedTable) -> None:
    assert sorted(t.table.scan().to_polars()["id"].to_list()) == sorted(t.rows)


def _pandas(t: TypedTable) -> None:
    assert sorted(t.table.scan().to_pandas(timestamp_as_object=True, date_as_object=True)["id"]) == sorted(t.rows)


def _changes(t: TypedTable) -> None:
    t.table.changes().to_arrow()


def _command_line(t: TypedTable) -> None:
    for arguments in (["head", "db.t"], ["head", "db.t", "--output", "json"], ["show", "db.t"]):
        outcome = CliRunner().invoke(app, ["--catalog", f"{t.directory}/lake", *arguments])
        assert outcome.exit_code == 0, (arguments, outcome.output, outcome.exception)


def _load(t: TypedTable) -> None:
    rows = t.new_rows(1)
    path = t.directory / f"load{t.last_id}.parquet"
    columns = t.arrow(rows)
    pq.write_table(columns, path)
    outcome = CliRunner().invoke(app, ["--catalog", f"{t.directory}/lake", "load", "db.t", str(path)])
    assert outcome.exit_code == 0, (outcome.output, outcome.exception)
    t.keep(rows)


def _relocate(t: TypedTable) -> None:
    with tempfile.TemporaryDirectory() as other:
        t.catalog.relocate(f"{other}/copy")
        with tf.open_catalog(f"{other}/copy") as copy:
            t.check(copy.load_table("db.t").scan().to_arrow())


def _verify(t: TypedTable) -> None:
    result = t.table.maintenance.verify(deep=True)
    assert not result.findings, result.findings


VERBS: Final[tuple[Callable[[TypedTable], None], ...]] = (
    _append,
    _append,
    _append_some,
    _append_dicts,
    _overwrite,
    _upsert,
    _upsert_keep,
    _upsert_null,
    _replace,
    _replace_interval,
    _merge,
    _merge_some,
    _update,
    _apply_changes,
    _delete_rows,
    _delete_nulls,
    _add_struct,
    _upsert_keep,
    _new_write,
    _add_files,
    _load,
    _duckdb,
    _delete_carrying,
)
READERS: Final[tuple[Callable[[TypedTable], None], ...]] = (_polars, _pandas, _changes, _command_line, _relocate)
JOBS: Final[tuple[Callable[[TypedTable], Any], ...]] = (
    lambda t: t.table.maintenance.convert_deletes(),
    lambda t: t.table.maintenance.compact(),
    lambda t: t.table.maintenance.rewrite_manifests(),
    lambda t: t.table.maintenance.rewrite_position_delete_files(),
    lambda t: t.table.maintenance.compute_table_stats(),
    lambda t: t.table.maintenance.health(),
    lambda t: t.table.maintenance.upkeep(),
    lambda t: t.table.maintenance.run(),
    lambda t: t.table.maintenance.expire_snapshots(),
    lambda t: t.table.maintenance.remove_orphan_files(),
    _verify,
)
