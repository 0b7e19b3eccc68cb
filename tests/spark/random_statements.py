"""Random statements; Spark, DuckDB and the model each execute them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from conditions_by_dialect import (
    DUCKDB,
    KINDS,
    SPARK,
    Column,
    Condition,
    conditions,
    key_conditions,
    literal,
    quoted,
    values_of,
)
from hypothesis import assume, note
from hypothesis import strategies as st
from pyiceberg.utils.datetime import date_to_days
from pyspark.sql.functions import expr
from three_tables import TARGET, ThreeTables, renamed

from tableformat.metadata.partition_identity import partition_identity
from tableformat.testing.key_order import Row
from tableformat.testing.model import ModelVerbs

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]
Statement: TypeAlias = Callable[[ThreeTables, Draw], None]

NAMES: Final = ("v", "w", "V2", "a b", "x.y", "select", 'q"q', "q`q", "ünï", "_delete", "_file2", "tick'")
_DIALECTS: Final = (SPARK, DUCKDB)
_WIDER: Final = {"int": "bigint", "float": "double"}


def rows_for(tables: ThreeTables, draw: Draw, *, max_size: int = 4) -> list[Row]:
    """New rows."""
    found = []
    for _ in range(draw(st.integers(1, max_size))):
        row: dict[str, Any] = {}
        for column in tables.columns:
            strategy = values_of(column)
            row[column.ident] = draw(strategy if column.ident in tables.key else st.none() | strategy)
        row["row"] = next(tables.numbers)
        found.append(row)
    return found


def insert_values(tables: ThreeTables, draw: Draw) -> None:
    _insert(tables, rows_for(tables, draw))


def insert_many(tables: ThreeTables, draw: Draw) -> None:
    """So many that rows of one file are deleted, changed and left."""
    _insert(tables, rows_for(tables, draw, max_size=8))


def _insert(tables: ThreeTables, rows: Sequence[Row]) -> None:
    text = f"INSERT INTO {tables.name} {_listed(tables, SPARK)} SELECT * FROM {tables.values(rows, SPARK)}"
    tables.run(text, [_duckdb_insert(tables, rows)], lambda verbs: verbs.append(rows))


def insert_some_columns(tables: ThreeTables, draw: Draw) -> None:
    """Columns that are not named are null; before Spark 4.1 each has to be named."""
    rows = rows_for(tables, draw, max_size=2)
    free = [column for column in tables.columns if column.ident not in (*tables.key, "row")]
    named = draw(st.lists(st.sampled_from(free), unique=True)) if free else []
    if tuple(map(int, tables.spark.version.split(".")[:2])) < (4, 1):
        named = draw(st.permutations(free))
    chosen = [*named, *(tables.column(ident) for ident in (*tables.key, "row"))]
    texts = [
        f"INSERT INTO {tables.named(d)} ({', '.join(column.told(d) for column in chosen)}) "
        f"SELECT * FROM {tables.values(rows, d, chosen)}"
        for d in _DIALECTS
    ]
    kept = [{column.ident: row[column.ident] for column in chosen} for row in rows]
    tables.run(texts[0], texts[1:], lambda verbs: verbs.append(kept))


def insert_from_itself(tables: ThreeTables, draw: Draw) -> None:
    """The statement reads one snapshot."""
    condition = draw(conditions(tables.columns))
    step = next(tables.numbers) * 1000

    def chosen(dialect: str) -> str:
        return ", ".join(
            f"{column.told(dialect)} + {step}" if column.ident == "row" else column.told(dialect)
            for column in tables.columns
        )

    texts = [
        f"INSERT INTO {tables.named(d)} {_listed(tables, d)} SELECT {chosen(d)} FROM {tables.named(d)} "
        f"WHERE {condition.text(d, '')}"
        for d in _DIALECTS
    ]

    def on_model(verbs: ModelVerbs) -> None:
        kept = [{column.ident: row.get(column.ident) for column in tables.columns} for row in verbs.current]
        verbs.append([{**row, "row": row["row"] + step} for row in kept if condition.matches(row)])

    tables.run(texts[0], texts[1:], on_model)


def delete(tables: ThreeTables, draw: Draw) -> None:
    _delete_where(tables, draw(_any_condition(tables)))


def _delete_where(tables: ThreeTables, condition: Condition) -> None:
    texts = [f"DELETE FROM {tables.named(d)} WHERE {condition.text(d, '')}" for d in _DIALECTS]
    tables.run(texts[0], texts[1:], lambda verbs: verbs.delete(condition.matches))


def delete_keys(tables: ThreeTables, draw: Draw) -> None:
    """Delete by key, without reading: the rows stay in files that the next statements read and change."""
    _delete_where(tables, draw(key_conditions([tables.column(ident) for ident in tables.key])))


def delete_by_subquery(tables: ThreeTables, draw: Draw) -> None:
    """Keys that the join finds prune files at run time."""
    condition = draw(conditions(tables.columns))
    texts = []
    for d in _DIALECTS:
        key = tables.column(tables.key[0]).told(d)
        inner = f"SELECT {key} FROM {tables.named(d)} WHERE {condition.text(d, '')}"
        texts.append(f"DELETE FROM {tables.named(d)} WHERE {key} IN ({inner})")

    def on_model(verbs: ModelVerbs) -> None:
        found = {row[tables.key[0]] for row in verbs.current if condition.matches(row)}
        verbs.delete(lambda row: row[tables.key[0]] in found)

    tables.run(texts[0], texts[1:], on_model)


def update(tables: ThreeTables, draw: Draw) -> None:
    """Update to values, or to the values of another column; both together swap them."""
    _update_where(tables, draw, draw(_any_condition(tables)))


def update_keys(tables: ThreeTables, draw: Draw) -> None:
    _update_where(tables, draw, draw(key_conditions([tables.column(ident) for ident in tables.key])))


def _update_where(tables: ThreeTables, draw: Draw, condition: Condition) -> None:
    settings = _settings(tables, draw)
    texts = [
        f"UPDATE {tables.named(d)} SET {', '.join(f'{c.told(d)} = {text(d)}' for c, text, _ in settings)} "
        f"WHERE {condition.text(d, '')}"
        for d in _DIALECTS
    ]

    def on_model(verbs: ModelVerbs) -> None:
        verbs.current = [_set(row, settings) if condition.matches(row) else row for row in verbs.current]

    tables.run(texts[0], texts[1:], on_model)


def merge(tables: ThreeTables, draw: Draw) -> None:
    """All clauses."""
    drawn = _drawn_merge(tables, draw)

    def on_model(verbs: ModelVerbs) -> None:
        verbs.current = _merged(verbs.current, drawn)

    tables.run(_merge_text(tables, drawn, SPARK), [_merge_text(tables, drawn, DUCKDB)], on_model)


def insert_overwrite(tables: ThreeTables, draw: Draw) -> None:
    """Without partitions named: everything."""
    rows = rows_for(tables, draw, max_size=2)
    tables.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "static")
    text = f"INSERT OVERWRITE {tables.name} {_listed(tables, SPARK)} SELECT * FROM {tables.values(rows, SPARK)}"
    tables.run(text, [f"DELETE FROM {TARGET}", _duckdb_insert(tables, rows)], lambda verbs: verbs.overwrite(rows))


def overwrite_by_condition(tables: ThreeTables, draw: Draw) -> None:
    condition = draw(key_conditions([tables.column(ident) for ident in tables.key]))
    rows = rows_for(tables, draw, max_size=2)
    note(f"overwrite({condition.text(SPARK, '')}) with {rows}")
    tables.as_frame(rows).writeTo(tables.name).option("allow-outside", "true").overwrite(
        expr(condition.text(SPARK, ""))
    )
    texts = [f"DELETE FROM {TARGET} WHERE {condition.text(DUCKDB, '')}", _duckdb_insert(tables, rows)]
    tables.others(texts, lambda verbs: verbs.overwrite(rows, where=condition.matches, allow_outside=True))


def overwrite_partitions(tables: ThreeTables, draw: Draw) -> None:
    """The library's own transforms decide which rows share a partition with new ones."""
    rows = rows_for(tables, draw, max_size=2)
    tables.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    note(f"dynamic overwrite with {rows}")
    try:
        tables.as_frame(rows).writeTo(tables.name).overwritePartitions()
    finally:
        tables.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    partition_of = _partition_of(tables)
    partitions = {partition_of(row) for row in rows}
    gone = [row["row"] for row in tables.model.rows() if partition_of(row) in partitions]
    listed = ", ".join(map(str, gone)) or "NULL"
    text = f"DELETE FROM {TARGET} WHERE {tables.column('row').told(DUCKDB)} IN ({listed})"
    tables.others(
        [text, _duckdb_insert(tables, rows)],
        lambda verbs: verbs.overwrite(rows, where=lambda row: partition_of(row) in partitions),
    )


def replace_prefix(tables: ThreeTables, draw: Draw) -> None:
    depth = draw(st.integers(1, len(tables.key)))
    prefix = [tables.column(ident) for ident in tables.key[:depth]]
    given = rows_for(tables, draw, max_size=3)
    # Each row is its own message, newer than those before it; without an order every key occurs once.
    is_ordered = draw(st.booleans())
    told_apart_by = tables.key[: depth if is_ordered else None]
    rows = list({tuple(row[name] for name in told_apart_by): row for row in given}.values())
    options = {"order-by": tables.column("row").name} if is_ordered else {}
    note(f"replace-prefix {[column.name for column in prefix]} {options} with {given}")
    options["replace-prefix"] = ",".join(column.name for column in prefix)
    tables.as_frame(given if is_ordered else rows).writeTo(tables.name).options(**options).append()
    listed = ", ".join(column.told(DUCKDB) for column in prefix)
    inner = f"SELECT {listed} FROM {tables.values(rows, DUCKDB)}"
    texts = [f"DELETE FROM {TARGET} WHERE ({listed}) IN ({inner})", _duckdb_insert(tables, rows)]
    tables.others(texts, lambda verbs: verbs.replace(rows, prefix=tables.key[:depth]))


def truncate(tables: ThreeTables, draw: Draw) -> None:
    if draw(st.booleans()):
        tables.run(
            f"TRUNCATE TABLE {tables.name}", [f"DELETE FROM {TARGET}"], lambda verbs: verbs.delete(lambda _: True)
        )


def add_column(tables: ThreeTables, draw: Draw) -> None:
    name, kind = draw(_free_name(tables)), draw(st.sampled_from(sorted(KINDS)))
    column = Column(f"c{next(tables.numbers)}", name, kind)
    place_of = draw(st.sampled_from(["", "FIRST", f"AFTER {draw(st.sampled_from(tables.columns)).told(SPARK)}"]))
    tables.change_columns(
        f"ALTER TABLE {tables.name} ADD COLUMN {column.told(SPARK)} {KINDS[kind].spark} {place_of}",
        [f"ALTER TABLE {TARGET} ADD COLUMN {column.told(DUCKDB)} {KINDS[kind].duckdb}"],
        (*tables.columns, column),
    )
    _follow_order(tables)


def drop_column(tables: ThreeTables, draw: Draw) -> None:
    """Afterwards its name may be used for another column."""
    free = [column for column in tables.columns if column.ident not in (*tables.fixed, "row")]
    if len(free) > 1:
        column = draw(st.sampled_from(free))
        tables.change_columns(
            f"ALTER TABLE {tables.name} DROP COLUMN {column.told(SPARK)}",
            [f"ALTER TABLE {TARGET} DROP COLUMN {column.told(DUCKDB)}"],
            (each for each in tables.columns if each != column),
        )


def rename_column(tables: ThreeTables, draw: Draw) -> None:
    _rename(tables, draw(st.sampled_from(tables.columns)), draw(_free_name(tables)))


def swap_names(tables: ThreeTables, draw: Draw) -> None:
    """The difficulty of filters by name: in old files each name belongs to the other column.

    Names of partition fields are not changed: PyIceberg rejects giving them to another column.
    """
    free = [column for column in tables.columns if column.name not in tables.partition_names()]
    one, other = draw(st.lists(st.sampled_from(free), min_size=2, max_size=2, unique=True))
    _rename(tables, one, "on the way")
    _rename(tables, other, one.name)
    _rename(tables, tables.column(one.ident), other.name)


def widen_column(tables: ThreeTables, draw: Draw) -> None:
    narrow = [column for column in tables.columns if column.kind in _WIDER and column.ident not in tables.fixed]
    if narrow:
        column = draw(st.sampled_from(narrow))
        kind = KINDS[_WIDER[column.kind]]
        tables.change_columns(
            f"ALTER TABLE {tables.name} ALTER COLUMN {column.told(SPARK)} TYPE {kind.spark}",
            [f"ALTER TABLE {TARGET} ALTER {column.told(DUCKDB)} SET DATA TYPE {kind.duckdb}"],
            (replace(each, kind=_WIDER[each.kind]) if each == column else each for each in tables.columns),
        )


def maintain(tables: ThreeTables, draw: Draw) -> None:
    """Jobs from Python, which change no row."""
    job, options = draw(st.sampled_from(_JOBS))
    note(f"{job}({options})")
    maintenance = tables.table.refresh().maintenance
    if job == "expire_snapshots":
        maintenance.expire_snapshots(older_than="9999-12-31", retain_last=draw(st.integers(1, 3)))
    else:
        getattr(maintenance, job)(**options)


def upgrade(tables: ThreeTables, draw: Draw) -> None:
    if draw(st.booleans()):
        note("upgrade")
        tables.run(f"ALTER TABLE {tables.name} SET TBLPROPERTIES ('format-version' = '3')", [], None)


def read_the_past(tables: ThreeTables, draw: Draw) -> None:
    if tables.past:
        tables.check_past(draw(st.sampled_from(tables.past)))


def filter_rows(tables: ThreeTables, draw: Draw) -> None:
    tables.check_filter(draw(_any_condition(tables)))


def aggregate(tables: ThreeTables, draw: Draw) -> None:
    """COUNT, MIN and MAX over the whole table come from metadata; with a filter or groups, they do not."""
    chosen = draw(st.lists(st.sampled_from(tables.columns), min_size=1, max_size=3, unique=True))
    condition = draw(_maybe(tables))
    functions = [(draw(st.sampled_from(["count", "min", "max", "count distinct"])), column) for column in chosen]
    group = draw(st.none() | st.sampled_from(tables.columns))

    def query(dialect: str) -> str:
        told = ["count(*)"]
        for function, column in functions:
            distinct = "DISTINCT " if function == "count distinct" else ""
            told.append(f"{function.split()[0]}({distinct}{column.told(dialect)})")
        if group is not None:
            told.append(group.told(dialect))
        names = [f"{text} AS r{number}" for number, text in enumerate(told)]
        where = "" if condition is None else f" WHERE {condition.text(dialect, '')}"
        by = "" if group is None else f" GROUP BY {group.told(dialect)}"
        return f"SELECT {', '.join(names)} FROM {tables.named(dialect)}{where}{by}"

    tables.check_query(query)


def top_rows(tables: ThreeTables, draw: Draw) -> None:
    condition = draw(_maybe(tables))
    order = draw(st.sampled_from(["ASC", "DESC"]))
    limit = draw(st.integers(0, 3))

    def query(dialect: str) -> str:
        where = "" if condition is None else f" WHERE {condition.text(dialect, '')}"
        row = tables.column("row").told(dialect)
        return f"SELECT {row} AS r FROM {tables.named(dialect)}{where} ORDER BY {row} {order} LIMIT {limit}"

    tables.check_query(query)


def self_join(tables: ThreeTables, draw: Draw) -> None:
    condition = draw(_any_condition(tables))
    by = draw(st.sampled_from(tables.columns))

    def query(dialect: str) -> str:
        name, row, column = tables.named(dialect), tables.column("row").told(dialect), by.told(dialect)
        inner = f"(SELECT * FROM {name} WHERE {condition.text(dialect, '')})"
        return f"SELECT o.{row} AS a, i.{row} AS b FROM {name} o JOIN {inner} i ON o.{column} = i.{column}"

    tables.check_query(query)


WRITES: Final[tuple[Statement, ...]] = (
    insert_values,
    insert_values,
    insert_values,
    insert_some_columns,
    insert_from_itself,
    delete,
    delete,
    delete_by_subquery,
    update,
    update,
    merge,
    merge,
    insert_overwrite,
    overwrite_by_condition,
    overwrite_partitions,
    replace_prefix,
    replace_prefix,
    truncate,
)
CHANGES_OF_COLUMNS: Final[tuple[Statement, ...]] = (add_column, drop_column, rename_column, swap_names, widen_column)
CHANGES_BESIDE_DELETED: Final[tuple[Statement, ...]] = (
    update,
    update_keys,
    update_keys,
    delete,
    delete_by_subquery,
    merge,
)
"""Statements that read files with rows that a blind delete has deleted."""
UPKEEP: Final[tuple[Statement, ...]] = (maintain, maintain, maintain, upgrade)
READS: Final[tuple[Statement, ...]] = (
    read_the_past,
    filter_rows,
    filter_rows,
    filter_rows,
    aggregate,
    aggregate,
    top_rows,
    self_join,
)
_JOBS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("convert_deletes", {}),
    ("convert_deletes", {}),
    ("compact", {"rewrite_all": True}),
    ("compact", {"depth": "fold", "delete_file_threshold": 1}),
    ("merge_range_deletes", {}),
    ("drop_dead_deletes", {}),
    ("rewrite_manifests", {}),
    ("expire_snapshots", {}),
)


def _any_condition(tables: ThreeTables) -> st.SearchStrategy[Condition]:
    key = [tables.column(ident) for ident in tables.key]
    return conditions(tables.columns) | key_conditions(key)


def _maybe(tables: ThreeTables) -> st.SearchStrategy[Condition | None]:
    return st.none() | conditions(tables.columns)


def _listed(tables: ThreeTables, dialect: str) -> str:
    return f"({', '.join(column.told(dialect) for column in tables.columns)})"


def _duckdb_insert(tables: ThreeTables, rows: Sequence[Row]) -> str:
    return f"INSERT INTO {TARGET} {_listed(tables, DUCKDB)} SELECT * FROM {tables.values(rows, DUCKDB)}"


def _free_name(tables: ThreeTables) -> st.SearchStrategy[str]:
    taken = {column.name.casefold() for column in tables.columns}
    return st.sampled_from([name for name in NAMES if name.casefold() not in taken])


def _rename(tables: ThreeTables, column: Column, name: str) -> None:
    tables.change_columns(
        f"ALTER TABLE {tables.name} RENAME COLUMN {column.told(SPARK)} TO {quoted(name, SPARK)}",
        [f"ALTER TABLE {TARGET} RENAME COLUMN {column.told(DUCKDB)} TO {quoted(name, DUCKDB)}"],
        renamed(tables.columns, column.ident, name),
    )


def _follow_order(tables: ThreeTables) -> None:
    """Use the column order of the lake's table."""
    names = tables.table.refresh().schema.names
    tables.columns = tuple(sorted(tables.columns, key=lambda column: names.index(column.name)))


Setting: TypeAlias = tuple[Column, Callable[[str], str], Callable[[Row], Any]]


def _settings(tables: ThreeTables, draw: Draw) -> list[Setting]:
    """Assignments of an UPDATE: to each column at most one."""
    targets = draw(
        st.lists(st.sampled_from([c for c in tables.columns if c.ident != "row"]), min_size=1, max_size=2, unique=True)
    )
    settings: list[Setting] = []
    for column in targets:
        alike = [each for each in tables.columns if each.kind == column.kind and _may_be_null(tables, column, each)]
        if draw(st.booleans()) and alike:
            other = draw(st.sampled_from(alike))
            settings.append((column, other.told, lambda row, other=other: row.get(other.ident)))  # type: ignore[misc]
        else:
            value = draw(values_of(column) if column.ident in tables.key else st.none() | values_of(column))
            settings.append(
                (
                    column,
                    lambda dialect, value=value, kind=column.kind: literal(value, kind, dialect),  # type: ignore[misc]
                    lambda _row, value=value: value,  # type: ignore[misc]
                )
            )
    return settings


def _may_be_null(tables: ThreeTables, column: Column, other: Column) -> bool:
    return column.ident not in tables.key or other.ident in tables.key


def _set(row: Row, settings: Sequence[Setting]) -> Row:
    return {**row, **{column.ident: value(row) for column, _, value in settings}}


Clauses: TypeAlias = Sequence[tuple[Condition | None, str]]
"""Conditions on the row of the table; "UPDATE" is by the settings, "ALL" to the source's row."""


@dataclass(frozen=True, slots=True)
class Merge:
    """A MERGE; no two rows of the source have the same values `on`."""

    on: tuple[str, ...]
    source: tuple[Row, ...]
    matched: Clauses
    inserts: bool
    unsourced: Clauses
    settings: Sequence[Setting]


def _drawn_merge(tables: ThreeTables, draw: Draw) -> Merge:
    on = draw(st.sampled_from([tables.key, tables.key[:1], tables.key[1:] or tables.key]))
    source = {tuple(row[ident] for ident in on): row for row in rows_for(tables, draw, max_size=3)}
    matched = _clauses(tables, draw, ["UPDATE", "ALL", "DELETE"])
    inserts = draw(st.booleans())
    unsourced = _clauses(tables, draw, ["UPDATE", "DELETE"])
    assume(matched or inserts or unsourced)
    return Merge(on, tuple(source.values()), matched, inserts, unsourced, _settings(tables, draw))


def _clauses(tables: ThreeTables, draw: Draw, actions: Sequence[str]) -> Clauses:
    """Only the last one may go without a condition."""
    found = [(draw(_maybe(tables)), draw(st.sampled_from(actions))) for _ in range(draw(st.integers(0, 2)))]
    return found[:1] if found and found[0][0] is None else found


def _merge_text(tables: ThreeTables, merge: Merge, dialect: str) -> str:
    told = [column.told(dialect) for column in tables.columns]
    in_source = [f"s.{name}" for name in told]
    keys = [tables.column(ident).told(dialect) for ident in merge.on]
    lines = [
        f"MERGE INTO {tables.named(dialect)} AS t",
        f"USING (SELECT * FROM {tables.values(merge.source, dialect)}) AS s",
        "ON " + " AND ".join(f"t.{name} = s.{name}" for name in keys),
    ]
    some = [f"{column.told(dialect)} = {_qualified(text(dialect), told)}" for column, text, _ in merge.settings]
    every = [f"{name} = {new}" for name, new in zip(told, in_source, strict=True)]
    actions = {
        "DELETE": "DELETE",
        "UPDATE": f"UPDATE SET {', '.join(some)}",
        "ALL": f"UPDATE SET {', '.join(every)}",
    }
    for found, clauses in (("MATCHED", merge.matched), ("NOT MATCHED BY SOURCE", merge.unsourced)):
        if found != "MATCHED" and merge.inserts:
            lines.append(f"WHEN NOT MATCHED THEN INSERT ({', '.join(told)}) VALUES ({', '.join(in_source)})")
        for condition, action in clauses:
            extra = "" if condition is None else f" AND {condition.text(dialect, 't.')}"
            lines.append(f"WHEN {found}{extra} THEN {actions[action]}")
    return " ".join(lines)


def _qualified(text: str, names: Sequence[str]) -> str:
    return f"t.{text}" if text in names else text


def _merged(current: Sequence[Row], merge: Merge) -> list[Row]:
    by_key = {tuple(row[ident] for ident in merge.on): row for row in merge.source}
    met = set()
    result: list[Row] = []
    for row in current:
        key = tuple(row[ident] for ident in merge.on)
        new = by_key.get(key)
        if new is not None:
            met.add(key)
        clauses = merge.matched if new is not None else merge.unsourced
        action = next((action for condition, action in clauses if condition is None or condition.matches(row)), None)
        if action == "ALL":
            assert new is not None
            result.append(new)
        elif action != "DELETE":
            result.append(row if action is None else _set(row, merge.settings))
    if merge.inserts:
        result.extend(row for key, row in by_key.items() if key not in met)
    return result


def _partition_of(tables: ThreeTables) -> Callable[[Row], tuple[Any, ...]]:
    """The partition of a row by PyIceberg's transforms."""
    metadata = tables.table.refresh().metadata
    schema = metadata.schema()
    fields = []
    for partition in metadata.spec().fields:
        name = schema.find_column_name(partition.source_id)
        ident = next(column.ident for column in tables.columns if column.name == name)
        fields.append((ident, partition.transform.transform(schema.find_type(partition.source_id))))
    return lambda row: partition_identity(0, tuple(transform(_internal(row.get(ident))) for ident, transform in fields))


def _internal(value: Any) -> Any:
    """A value as Iceberg's transforms take it."""
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    return date_to_days(value) if isinstance(value, dt.date) else value
