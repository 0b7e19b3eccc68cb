"""Steps of a table of random columns: an operation, a job, a change of columns, spec, version or branches, or an
expiry."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Final

from evolving_combined_operations import more_verbs_for, set_properties
from evolving_open_handles import act_on_held, hold, read_held
from evolving_staged import commit_staged, publish_snapshot, stage_rows, stage_snapshot
from evolving_tables import MAIN, NAMES, NUMBER_COLUMN, EvolvingTable
from pyiceberg.schema import index_by_id
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import (
    BooleanType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
)

from tableformat.errors import CommitConflictError, InvalidArgumentError, UnsupportedFeatureError
from tableformat.testing.json_values import schema_from_json

_ANY_AGE: Final = dt.datetime(2999, 1, 1, tzinfo=dt.UTC)
_JOBS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("convert_deletes", {}),
    ("convert_deletes", {}),
    ("compact", {"rewrite_all": True}),
    ("compact", {"min_input_files": 2}),
    ("merge_range_deletes", {}),
    ("rewrite_position_delete_files", {}),
    ("drop_dead_deletes", {}),
    ("rewrite_manifests", {}),
    ("compute_table_stats", {}),
    ("upkeep", {}),
)
_DEFAULTS: Final[dict[type[IcebergType], Any]] = {
    StringType: "\U0010ffff" * 17,
    LongType: 2**63 - 1,
    BooleanType: True,
    IntegerType: -1,
}


def begin(known: EvolvingTable) -> None:
    """The table with its first rows, in half of the cases of a second spec."""
    known.create()
    if known.random.random() < 0.5:
        change_spec(known)
    act(known)


def step(known: EvolvingTable) -> None:
    steps = list(_STEPS)
    (chosen,) = known.random.choices(steps, [_STEPS[each] for each in steps])
    chosen(known)


def act(known: EvolvingTable) -> None:
    """Run one operation."""
    branch = known.random.choice(known.branches)
    table = known.handle(branch)
    before = known.rows_of(table)
    verb = known.random.choice(more_verbs_for(table, before))
    try:
        after = verb(known, table, before)
    except UnsupportedFeatureError as error:
        # Equality deletes of several fixed values, which Iceberg's Java library reads incorrectly.
        if "fixed" not in str(error):
            raise
        known.log.append(f"  refused: {error}")
        after = before
    known.settle(known.handle(branch), after)


def run_job(known: EvolvingTable) -> None:
    branch = known.random.choice(known.branches)
    name, options = known.random.choice(_JOBS)
    known.log.append(f"job {name} {options} on {branch}")
    table = known.handle(branch)
    before = known.rows_of(table)
    getattr(table.maintenance, name)(**options)
    known.settle(known.handle(branch), before)


def change_schema(known: EvolvingTable) -> None:
    pick, table = known.random, known.handle()
    schema = table.metadata.schema()
    fields = [each for each in schema.fields if each.name != NUMBER_COLUMN]
    taken = {each.name.casefold() for each in schema.fields}
    free = pick.choice([name for name in NAMES if name.casefold() not in taken])
    if not fields:
        return
    column, change = pick.choice(fields), pick.choice(_CHANGES)
    known.log.append(f"{change.__name__} {column.name}, {free}")
    try:
        with table.update_schema() as builder:
            change(known, builder, column, free)
    except InvalidArgumentError as error:
        known.log.append(f"  refused: {error}")


def change_behind_others(known: EvolvingTable) -> None:
    """CP-50: through a handle from before a column was added, filled and dropped, or renamed and renamed back."""
    behind, pick = known.handle(), known.random
    taken = {each.name.casefold() for each in behind.metadata.schema().fields}
    name, other = pick.sample([each for each in NAMES if each.casefold() not in taken], 2)
    fields = [each for each in behind.metadata.schema().fields if each.name != NUMBER_COLUMN]
    if name.casefold() == other.casefold() or not fields:
        return
    known.log.append(f"{name} comes and goes, and a handle from before changes columns")
    if pick.random() < 0.5:
        with known.handle().update_schema() as update:
            update.add_column((name,), _random_type(known, behind.metadata.format_version))
        act(known)
        with known.handle().update_schema() as update:
            update.delete_column((name,))
    else:
        for old, new in ((fields[0].name, name), (name, fields[0].name)):
            with known.handle().update_schema() as update:
                update.rename_column((old,), new)
    before = known.handle().metadata
    change = pick.choice((_add, _rename, _drop, _widen))
    try:
        with behind.update_schema() as update:
            change(known, update, pick.choice(fields), other)
    except (InvalidArgumentError, CommitConflictError) as error:
        known.log.append(f"  refused: {error}")
    after = known.handle().metadata
    came = set(index_by_id(after.schema())) - set(index_by_id(before.schema()))
    assert all(each > before.last_column_id for each in came), "a column got the id of one that was dropped"
    ids = [each.schema_id for each in after.schemas]
    assert len(set(ids)) == len(ids), f"schemas share an id: {ids}"


def stage_rows_and_rename(known: EvolvingTable) -> None:
    """The rows that staged rows replace are identified by key columns: one of these gets another name, or the name of
    another column."""
    stage_rows(known)
    key, pick = known.handle().key, known.random
    if len(key) > 1:
        exchange_names(known)
    elif key and key[0] != NUMBER_COLUMN:
        taken = {each.name.casefold() for each in known.handle().metadata.schema().fields}
        free = pick.choice([name for name in NAMES if name.casefold() not in taken])
        known.log.append(f"rename {key[0]} of the key to {free}")
        with known.handle().update_schema() as update:
            update.rename_column((key[0],), free)
    commit_staged(known)


def exchange_names(known: EvolvingTable) -> None:
    """Exchange the names of two columns; most often two columns of the key, if it has several."""
    table, pick = known.handle(), known.random
    names = [each.name for each in table.metadata.schema().fields if each.name != NUMBER_COLUMN]
    if len(names) < 2:
        return
    of_key = [name for name in table.key if name in names]
    one, other = pick.sample(of_key if len(of_key) > 1 and pick.random() < 0.7 else names, 2)
    known.log.append(f"exchange the names of {one} and {other}")
    for old, new in ((one, "for a moment"), (other, one), ("for a moment", other)):
        with known.handle().update_schema() as update:
            update.rename_column((old,), new)


def _rename(_known: EvolvingTable, builder: Any, column: NestedField, free: str) -> None:
    builder.rename_column((column.name,), free)


def _drop(_known: EvolvingTable, builder: Any, column: NestedField, _free: str) -> None:
    builder.delete_column((column.name,))


def _move(_known: EvolvingTable, builder: Any, column: NestedField, _free: str) -> None:
    builder.move_first((column.name,))


def _add(known: EvolvingTable, builder: Any, _column: NestedField, free: str) -> None:
    version = known.handle().metadata.format_version
    added = _random_type(known, version)
    default = _DEFAULTS.get(type(added)) if version >= 3 and known.random.random() < 0.6 else None
    builder.add_column((free,), added, **({} if default is None else {"default_value": default}))


def _widen(_known: EvolvingTable, builder: Any, column: NestedField, _free: str) -> None:
    wider = _wider(column.field_type)
    if wider is not None:
        builder.update_column((column.name,), wider)


def _change_inside(known: EvolvingTable, builder: Any, column: NestedField, free: str) -> None:
    if not isinstance(column.field_type, StructType):
        return
    pick, names = known.random, [each.name for each in column.field_type.fields]
    inner = pick.choice(column.field_type.fields)
    match pick.choice(("rename", "add", "drop", "widen")):
        case "add" if free not in names:
            builder.add_column((column.name, free), _random_type(known, known.handle().metadata.format_version))
        case "rename" if free not in names:
            builder.rename_column((column.name, inner.name), free)
        case "drop" if len(names) > 1:
            builder.delete_column((column.name, inner.name))
        case "widen" if (wider := _wider(inner.field_type)) is not None:
            builder.update_column((column.name, inner.name), wider)


def change_spec(known: EvolvingTable) -> None:
    pick, table = known.random, known.handle()
    schema, spec = table.metadata.schema(), table.metadata.spec()
    column = pick.choice([each for each in schema.fields if isinstance(each.field_type, PrimitiveType)])
    transform = pick.choice(_TRANSFORMS)
    try:
        with table.update_spec() as builder:
            if spec.fields and pick.random() < 0.5:
                known.log.append(f"remove field {spec.fields[0].name}")
                builder.remove_field(spec.fields[0].name)
            elif transform.can_transform(column.field_type):
                known.log.append(f"add field {transform} of {column.name}")
                builder.add_field(column.name, transform, f"part_{pick.randint(0, 9**9)}")
    except InvalidArgumentError as error:
        known.log.append(f"  refused: {error}")


def change_key(known: EvolvingTable) -> None:
    table = known.handle()
    required = [each.name for each in table.metadata.schema().fields if each.required]
    if required:
        key = known.random.sample(required, known.random.randint(1, len(required)))
        known.log.append(f"key {key}")
        table.set_key(key)


def upgrade(known: EvolvingTable) -> None:
    table = known.handle()
    if table.metadata.format_version < 3:
        known.log.append("upgrade")
        table.upgrade()


def branch(known: EvolvingTable) -> None:
    table = known.handle()
    known.rows_of(table)
    if len(known.branches) < 3 and table.snapshot_id is not None:
        name, at = f"b{len(known.branches)}", known.random.choice(known.line(table))
        known.log.append(f"branch {name} at {at}")
        table.create_branch(name, at)
        known.branches.append(name)


def move_branch(known: EvolvingTable) -> None:
    """Back to an ancestor, or main forward to the head of another branch."""
    pick, name = known.random, known.random.choice(known.branches)
    table = known.handle(name)
    line = known.line(table)
    if name != MAIN and known.handle().snapshot_id in line and pick.random() < 0.7:
        known.log.append(f"fast forward main to {name}")
        table.fast_forward(MAIN, name)
    elif line:
        target = pick.choice(line)
        known.log.append(f"rollback {name} to {target}")
        table.rollback(snapshot_id=target)


def expire(known: EvolvingTable) -> None:
    known.wait_for_upkeep()
    table, retained = known.handle(), known.random.randint(1, 4)
    for name in known.branches:
        known.rows_of(known.handle(name))
    forgets = known.random.random() < 0.5
    known.log.append(f"expire {retained}, {'specs and schemas' if forgets else 'orphans'} too")
    table.maintenance.expire_snapshots(older_than=_ANY_AGE, retain_last=retained, clean_expired_metadata=forgets)
    if not forgets:
        # Files that are staged and named nowhere are orphans.
        known.staged.clear()
        table.maintenance.remove_orphan_files(older_than=_ANY_AGE, allow_recent=True)
    left = {each.snapshot_id for each in table.refresh().metadata.snapshots}
    assert left <= known.snapshots.keys(), "expiry made a snapshot"
    known.snapshots = {None: (), **{each: known.snapshots[each] for each in left}}


_TRANSFORMS: Final = (
    *(IdentityTransform(), IdentityTransform(), BucketTransform(2), TruncateTransform(1)),
    *(YearTransform(), MonthTransform(), DayTransform(), HourTransform()),
)
_STEPS: Final[dict[Callable[[EvolvingTable], None], int]] = {
    act: 12,
    run_job: 4,
    change_schema: 4,
    change_spec: 1,
    upgrade: 1,
    branch: 1,
    move_branch: 1,
    expire: 1,
    change_key: 1,
    exchange_names: 1,
    change_behind_others: 1,
    stage_rows: 2,
    stage_rows_and_rename: 1,
    commit_staged: 2,
    stage_snapshot: 1,
    publish_snapshot: 1,
    hold: 2,
    read_held: 2,
    act_on_held: 2,
    set_properties: 1,
}
"""The relative frequency of each step."""
_CHANGES: Final = (_rename, _rename, _drop, _add, _add, _widen, _move, _change_inside)


def _random_type(known: EvolvingTable, version: int) -> IcebergType:
    (added,) = schema_from_json({"added": known.random_type(version)}).fields
    return added.field_type


def _wider(of: IcebergType) -> IcebergType | None:
    match of:
        case IntegerType():
            return LongType()
        case FloatType():
            return DoubleType()
        case DecimalType() if of.precision < 38:
            return DecimalType(min(38, of.precision + 10), of.scale)
    return None
