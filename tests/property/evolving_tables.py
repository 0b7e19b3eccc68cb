"""A table of random columns, and the expected rows of each of its snapshots."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from evolving_values import (
    COLUMN_TYPES,
    LONG_TEXT,
    NANO_TYPES,
    Condition,
    KnownRow,
    Rows,
    Values,
    condition,
    rows_in,
    value_at,
    values_of,
    with_bytes,
    without_extension,
)
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, PrimitiveType, StructType

import tableformat as tf
from tableformat.commit.snapshot_summary import changes_no_row
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.testing.json_values import schema_from_json

MAIN: Final = "main"
NAMES: Final = ("a", "b", "c", "id", "Ä", "with space", "dot.ted", 'quo"te', "select", "C", "_position", "row_id", "'")
NUMBER_COLUMN: Final = "number"
"""A column that stays, so that no table is without one."""
_FLOATS: Final = ("float", "double")


@dataclass
class EvolvingTable:
    """Each row has a number, which shows what a snapshot did to it."""

    catalog: tf.Catalog
    name: str
    random: random.Random
    snapshots: dict[int | None, Rows] = field(default_factory=lambda: {None: ()})
    branches: list[str] = field(default_factory=lambda: [MAIN])
    carried: set[int] = field(default_factory=set)
    """Snapshots that may have rewritten rows that the operation did not change."""
    log: list[str] = field(default_factory=list)
    """The steps, as information for a failure."""
    staged: list[Any] = field(default_factory=list)
    """Rows that were written and wait for their commit (`evolving_staged`)."""
    waiting: list[Any] = field(default_factory=list)
    """Snapshots that no branch has."""
    published: list[Any] = field(default_factory=list)
    """The waiting snapshots that were published to a branch."""
    held: list[Any] = field(default_factory=list)
    """Handles and readers of former states (`evolving_open_handles`)."""
    types: Sequence[str] = ()
    """A few, so that keys, partitions and columns of one type are many."""
    _next_number: int = 0

    def create(self) -> None:
        pick = self.random
        version = pick.choice((2, 3))
        self.types = pick.sample((*COLUMN_TYPES, *(NANO_TYPES * 2 if version >= 3 else ())), 3)
        names = pick.sample(NAMES, 5)
        if {"c", "C"} <= set(names):
            names.remove("C")
        columns = {NUMBER_COLUMN: "long", **{name: self.random_type(version) for name in names}}
        order = pick.sample(sorted(columns), len(columns))
        can_be_key = [name for name in order if isinstance(columns[name], str) and columns[name] not in _FLOATS]
        key = pick.sample(can_be_key, min(len(can_be_key), pick.choice((0, 1, 1, 2))))
        schema = schema_from_json({name: columns[name] for name in order}, required=key)
        modes = ("merge-on-read", "merge-on-read", "copy-on-write")
        properties = {
            "format-version": str(version),
            "write.parquet.row-group-limit": pick.choice(("1", "2", "100000")),
            "commit.manifest.min-count-to-merge": pick.choice(("2", "100")),
            "write.delete.mode": pick.choice(modes),
            "write.update.mode": pick.choice(modes),
            "write.merge.mode": pick.choice(modes),
            "write.delete.prefix-encoding": pick.choice(("range", "equality")),
            "tableformat.scan.range-span-budget": pick.choice(("1", "100000")),
            "write.metadata.metrics.default": pick.choice(("truncate(16)", "full", "counts", "truncate(1)")),
            "write.parquet.bloom-filter-enabled.column.number": pick.choice(("true", "false")),
        }
        if pick.random() < 0.25:
            few = {"tableformat.upkeep.files-per-level": "2", "tableformat.upkeep.write-amplification": "1000"}
            properties |= {"tableformat.upkeep": pick.choice(("writer", "background")), **few}
        self.log.append(f"create {schema} key {key} {properties}")
        self.catalog.create_table(self.name, schema, key=key, properties=properties)

    def random_type(self, version: int) -> Any:
        """In JSON: mostly one without parts."""
        pick = self.random
        others = (*COLUMN_TYPES, *(NANO_TYPES if version >= 3 else ()))
        primitive = self.types if pick.random() < 0.8 else others
        kind = pick.random()
        if kind < 0.75:
            return pick.choice(primitive)
        inner = [
            {"id": 900 + place, "name": name, "required": False, "type": pick.choice(primitive)}
            for place, name in enumerate(pick.sample(NAMES[:9], 2))
        ]
        if kind < 0.85:
            return {"type": "struct", "fields": inner}
        if kind < 0.9:
            nested = {"id": 910, "name": "in", "required": False, "type": {"type": "struct", "fields": inner}}
            return {"type": "struct", "fields": [nested]}
        element = pick.choice(primitive)
        if kind < 0.95:
            return {"type": "list", "element-id": 920, "element": element, "element-required": False}
        ids = {"key-id": 930, "value-id": 931}
        return {"type": "map", **ids, "key": "string", "value": element, "value-required": False}

    # -- what it is ---------------------------------------------------------------------------------------------------

    def handle(self, branch: str = MAIN) -> tf.Table:
        """A handle at the head; in half of the cases after the pending background upkeep, otherwise concurrently with
        it."""
        if self.random.random() < 0.5:
            self.wait_for_upkeep()
        return self.catalog.load_table(self.name, branch=branch)

    def wait_for_upkeep(self) -> None:
        maintenance = self.catalog.load_table(self.name).maintenance
        assert maintenance.wait_for_upkeep(timeout_seconds=60), "upkeep does not end"
        metrics = maintenance.upkeep_metrics
        assert metrics.failure_count == 0, metrics

    def rows_of(self, table: tf.Table) -> Rows:
        """The rows of the handle's snapshot; upkeep, which changes no row, may have created it."""
        before: Rows = ()
        for snapshot_id in self.line(table):
            if snapshot_id not in self.snapshots:
                snapshot = table.metadata.snapshot_by_id(snapshot_id)
                assert snapshot is not None
                assert changes_no_row(snapshot), "a snapshot that nobody asked for"
                self.snapshots[snapshot_id] = before
            before = self.snapshots[snapshot_id]
        return before

    def line(self, table: tf.Table) -> list[int]:
        """The ancestors of the head, oldest first."""
        return [each.snapshot_id for each in ancestors(table.metadata, table.view.snapshot)][::-1]

    def settle(self, table: tf.Table, rows: Rows) -> None:
        """Record that the requested change has happened: in one snapshot that changes rows, and any number that do
        not."""
        before: Rows = ()
        for snapshot_id in self.line(table):
            if snapshot_id not in self.snapshots:
                snapshot = table.metadata.snapshot_by_id(snapshot_id)
                assert snapshot is not None
                self.snapshots[snapshot_id] = before if changes_no_row(snapshot) else rows
                if "copy-on-write" in table.properties.values():
                    self.carried.add(snapshot_id)
            before = self.snapshots[snapshot_id]
        assert {row.number for row in before} == {row.number for row in rows}, "what was asked for was not committed"

    # -- rows ---------------------------------------------------------------------------------------------------------

    def value(self, of: IcebergType, *, required: bool = False) -> Any:
        pick = self.random
        if not required and pick.random() < 0.2:
            return None
        match of:
            case StructType():
                return {each.field_id: self.value(each.field_type) for each in of.fields}
            case ListType():
                return [self.value(of.element_type) for _ in range(pick.choice((0, 1, 2)))]
            case MapType():
                keys = pick.sample(("", "k", LONG_TEXT), pick.choice((0, 1, 2)))
                return [(key, self.value(of.value_type)) for key in keys]
        assert isinstance(of, PrimitiveType)
        return pick.choice(values_of(of))

    def new_rows(self, schema: Schema, like: Rows = (), *, at_most: int = 3) -> Rows:
        """Some of them like rows that are there."""
        pick, made = self.random, []
        for _ in range(pick.randint(1, at_most)):
            values = {each.field_id: self.value(each.field_type, required=each.required) for each in schema.fields}
            if like and pick.random() < 0.4:
                other = pick.choice(like).values
                values |= {each.field_id: value_at(other, (each,)) for each in schema.fields if pick.random() < 0.8}
            made.append(self.numbered(values))
        return tuple(made)

    def numbered(self, values: Values) -> KnownRow:
        self._next_number += 1
        return KnownRow(self._next_number, values)

    def condition(self, schema: Schema, rows: Rows) -> Condition:
        return condition(self.random, schema, rows)


def arrow_of(table: tf.Table, rows: Rows, names: Sequence[str] | None = None) -> pa.Table:
    """Rows in the table's schema, or in some of its columns; UUIDs as bytes."""
    fields = [each for each in table.schema if names is None or each.name in names]
    storage = pa.schema([each.with_type(without_extension(each.type)) for each in fields])
    return pa.Table.from_pylist(with_bytes(rows_in(rows, table.metadata.schema())), schema=storage)
