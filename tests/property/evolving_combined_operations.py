"""Operations on a table of random columns that combine others or use their own files: transactions, repeated batches,
adding files without field ids, and merges that change rows without a matching source row."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from evolving_operations import (
    Verb,
    append,
    foreign_append,
    foreign_equality,
    key_columns,
    last_of_each,
    verbs_for,
)
from evolving_tables import EvolvingTable, arrow_of
from evolving_values import KnownRow, Rows, are_alike, rows_in

import tableformat as tf
from tableformat.errors import InvalidArgumentError, RowsRefusedError, TableFormatError, UnsupportedFeatureError
from tableformat.storage.location import local_path

_OF_OTHERS: Final = (foreign_append, foreign_equality)
_IN_BATCHES: Final = (
    *("append", "delete", "delete_prefix", "delete_range", "delete_rows", "replace", "replace_interval", "upsert"),
    *("update", "apply_changes", "overwrite"),
)
_PROPERTIES: Final = (
    *({f"write.{each}.mode": mode} for each in ("delete", "update", "merge") for mode in ("copy-on-write",)),
    {"write.delete.mode": "merge-on-read"},
    {"write.delete.prefix-encoding": "equality"},
    {"write.delete.prefix-encoding": "range"},
    {"write.delete.blind": "equality"},
    {"write.delete.blind": "off"},
    {"tableformat.write.sort": "none"},
    {"write.target-file-size-bytes": "1"},
    {"write.metadata.metrics.default": "none"},
    {"write.metadata.metrics.default": "full"},
)
_numbers = itertools.count(1)


class _Verbs:
    """Stands for a table in an operation of the tests; some of its methods are replaced."""

    def __init__(self, table: tf.Table, method: Callable[[str], Any | None]) -> None:
        self._table = table
        self._method = method

    def __getattr__(self, name: str) -> Any:
        found = self._method(name)
        return getattr(self._table, name) if found is None else found


def transaction(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    """Two or three operations in one snapshot, each on the rows that the previous ones left."""
    rows = before
    known.log.append("transaction:")
    with table.transaction() as staged:
        inside: Any = _Verbs(table, lambda name: getattr(staged, name, None))
        for _ in range(known.random.choice((2, 2, 3))):
            rows = known.random.choice(_verbs_of_ours(table, rows))(known, inside, rows)
    return rows


def repeated_batch(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    """CP-14: the call happens twice, by another handle as often as not, and once in the table."""
    assert table.catalog is not None
    other = table.catalog.load_table(table.name, branch=table.branch)

    def method(name: str) -> Any | None:
        if name not in _IN_BATCHES:
            return None

        def call(*arguments: Any, **options: Any) -> None:
            batch = {"application_id": "test", "batch_id": next(_numbers)}
            result = getattr(table, name)(*arguments, **options, **batch)
            again = getattr(known.random.choice((table, other)), name)(*arguments, **options, **batch)
            assert again.already_applied or not result.attempts, f"{name} happened twice"

        return call

    known.log.append("twice:")
    inside: Any = _Verbs(table, method)
    return known.random.choice(_verbs_of_ours(table, before))(known, inside, before)


def add_files(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    """LK-10, LK-19: a file without field ids that may lack columns; with some names and in some partitions it is
    rejected."""
    schema, pick = table.metadata.schema(), known.random
    new = known.new_rows(schema, before)
    names = [each.name for each in schema.fields if each.required or pick.random() < 0.8]
    location = local_path(table.location)
    assert location is not None, "the lake is a directory"
    path = Path(location).parents[2] / f"{next(_numbers)}.parquet"
    # The stored schema would have field ids of PyArrow's.
    rows = arrow_of(table, new).select(names)
    pq.write_table(
        rows, path, row_group_size=pick.choice((1, 100)), write_statistics=pick.random() < 0.8, store_schema=False
    )
    known.log.append(f"add a file of {names}: {rows_in(new, schema)}")
    try:
        table.add_files([str(path)])
    except (InvalidArgumentError, RowsRefusedError, UnsupportedFeatureError) as error:
        known.log.append(f"  refused: {error}")
        return before
    ids = {each.field_id for each in schema.fields if each.name in names}
    return before + tuple(KnownRow(row.number, {each: row.values[each] for each in ids}) for row in new)


def merge_with_others(known: EvolvingTable, table: tf.Table, before: Rows) -> Rows:
    """By the key: rows that match, rows of the source alone, and rows of the table alone."""
    schema, key, pick = table.metadata.schema(), key_columns(table), known.random
    given = last_of_each(known.new_rows(schema, before), key)
    matched, is_inserted, others = (
        pick.choice(("update", "delete", "keep")),
        pick.random() < 0.7,
        pick.choice(("keep", "delete")),
    )
    known.log.append(f"merge by key: {matched}, {is_inserted}, others {others}: {rows_in(given, schema)}")
    statement = table.merge(arrow_of(table, given), on=[each.name for each in key])
    if matched == "update":
        statement = statement.when_matched_update_all()
    if matched == "delete":
        statement = statement.when_matched_delete()
    if others == "delete":
        statement = statement.when_not_matched_by_source_delete()
    if is_inserted or (matched, others) == ("keep", "keep"):
        is_inserted = True
        statement = statement.when_not_matched_insert_all()
    statement.execute()
    found = [next((each for each in given if are_alike(each.values, row.values, key)), None) for row in before]
    after = [
        known.numbered(source.values) if source is not None and matched == "update" else row
        for row, source in zip(before, found, strict=True)
        if (others if source is None else matched) != "delete"
    ]
    there = {source.number for source in found if source is not None}
    return (*after, *(row for row in given if is_inserted and row.number not in there))


def set_properties(known: EvolvingTable) -> None:
    properties = known.random.choice(_PROPERTIES)
    known.log.append(f"set {properties}")
    try:
        known.handle().set_properties(properties)
    except TableFormatError as error:
        known.log.append(f"  refused: {error}")


def more_verbs_for(table: tf.Table, before: Rows) -> list[Verb]:
    found = [*verbs_for(table, before), transaction, transaction, repeated_batch, add_files, add_files]
    return [*found, merge_with_others] if before and table.key else found


def _verbs_of_ours(table: tf.Table, rows: Rows) -> list[Verb]:
    return [verb for verb in verbs_for(table, rows) if verb not in _OF_OTHERS] or [append]
