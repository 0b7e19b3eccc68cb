"""Objects that a caller keeps while the table changes: handles, scans, datasets, and readers that were left half-read.

They return the rows and columns of the moment when they were created, or report that the snapshot has expired.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from evolving_checks import same
from evolving_operations import append_unless_present, verbs_for
from evolving_tables import EvolvingTable
from evolving_values import Rows
from pyiceberg.schema import Schema

import tableformat as tf
from tableformat.errors import TableFormatError

_AT_MOST: Final = 4


@dataclass(frozen=True, slots=True)
class Held:
    """A handle, and ways to get its rows that were begun."""

    table: tf.Table
    schema: Schema
    rows: Rows
    doors: dict[str, Callable[[], pa.Table]]


def hold(known: EvolvingTable) -> None:
    table = known.handle(known.random.choice(known.branches))
    known.log.append(f"hold {table.snapshot_id} of {table.branch}")
    rows, scan = known.rows_of(table), table.scan()
    half_read, begun = scan.to_arrow_batch_reader(), []
    for batch in half_read:
        begun.append(batch)
        break
    doors = {
        "handle": lambda: table.scan().to_arrow(),
        "scan": scan.to_arrow,
        "dataset": scan.to_dataset().to_table,
        "reader": scan.to_arrow_batch_reader().read_all,
        "half-read": lambda: pa.Table.from_batches([*begun, *half_read], half_read.schema),
    }
    known.held = [*known.held, Held(table, table.metadata.schema(), rows, doors)][-_AT_MOST:]


def read_held(known: EvolvingTable) -> None:
    """Readers are read once."""
    if not known.held:
        return
    held = known.random.choice(known.held)
    name = known.random.choice(list(held.doors))
    door = held.doors[name] if name in ("handle", "scan", "dataset") else held.doors.pop(name)
    known.log.append(f"read the {name} held at {held.table.snapshot_id}")
    try:
        found = door()
    except (TableFormatError, pa.ArrowException, OSError) as error:
        assert _has_expired(known, held.table), "what is held cannot be read although its snapshot is there"
        known.log.append(f"  {type(error).__name__}: {error}")
        return
    same(found, held.rows, held.schema, f"held {name}")


def act_on_held(known: EvolvingTable) -> None:
    """An operation on an outdated handle has its stated effect on the head, or raises an error (CP-35, CP-36)."""
    usable = [each for each in known.held if _means_the_same(known, each)]
    if not usable:
        return
    held = known.random.choice(usable)
    table = held.table
    known.log.append(f"by the handle held at {table.snapshot_id} of {table.branch}:")
    known.held = [each for each in known.held if each is not held]
    before = known.rows_of(known.handle(table.branch))
    verbs = [verb for verb in verbs_for(table, before) if verb is not append_unless_present]
    try:
        after = known.random.choice(verbs)(known, table, before)
    except TableFormatError as error:
        known.log.append(f"  refused: {type(error).__name__}: {error}")
        after = before
    known.wait_for_upkeep()
    known.settle(known.handle(table.branch), after)


def _means_the_same(known: EvolvingTable, held: Held) -> bool:
    """Whether every name of the handle still means the same column, and the key has the same columns."""
    current: Any = known.handle(held.table.branch)
    now = {each.name: each.field_id for each in current.metadata.schema().fields}
    key = {current.metadata.schema().find_field(name).field_id for name in current.key}
    return key == {held.schema.find_field(name).field_id for name in held.table.key} and all(
        now.get(each.name, each.field_id) == each.field_id for each in held.schema.fields
    )


def _has_expired(known: EvolvingTable, table: tf.Table) -> bool:
    return known.handle().metadata.snapshot_by_id(table.snapshot_id or 0) is None
