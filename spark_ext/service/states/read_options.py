"""Options of a batch read: `spark.read.option("tag", "x").table("lake.db.t")`, `SELECT * FROM t WITH (tag = 'x')`.

The names match Iceberg's Spark source. Spark loads a table with the options that select its state before it is
known whether a stream or a batch is read. Options that only a batch rejects are therefore checked when it is planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spark_ext.service.registry import Request, method
from spark_ext.service.session import Pin, Session
from spark_ext.service.states.option_values import (
    BRANCH,
    SNAPSHOT_ID,
    check_options,
    moment_of,
    number_of,
    warn_of_idle_options,
)
from tableformat.errors import InvalidArgumentError
from tableformat.table import Table

AS_OF_TIMESTAMP: Final = "as-of-timestamp"
TAG: Final = "tag"
SPLIT_SIZE: Final = "split-size"
FILE_OPEN_COST: Final = "file-open-cost"
APPENDS_OPTIONS: Final = ("start-snapshot-id", "end-snapshot-id")
_SIZES: Final = (SPLIT_SIZE, FILE_OPEN_COST)
_IDLE: Final = (
    "aggregate-push-down-enabled",
    "batch-size",
    "executor-cache-locality-enabled",
    "locality",
    "lookback",
    "vectorization-enabled",
)
"""Options of Iceberg's source that have no effect here and affect no rows (SP-27)."""
STATE_OPTIONS: Final = (SNAPSHOT_ID, AS_OF_TIMESTAMP, BRANCH, TAG)
_TIME_TRAVEL: Final = {"version": "VERSION AS OF", "timestamp_micros": "TIMESTAMP AS OF"}
"""Arguments of a load, with the clause that sets each."""
_OF_SPARK: Final = ("versionAsOf", "timestampAsOf", "path", "header", "inferSchema", "mergeSchema")
"""Options for Spark itself or for its own sources. One reader with these options may be used for Spark's tables and for
ours."""
_INTERNAL: Final = "__"
"""Prefix of options that Spark passes to itself."""


def pin_of_options(table: Table, identifier: tuple[str, ...], options: Mapping[str, str]) -> Pin:
    """The state that the options select, or the current state if the snapshot no longer exists: a stream with a
    checkpoint does not need it any more."""
    given, location = _folded(options), table.iceberg.metadata_location
    if given.keys() != {BRANCH, SNAPSHOT_ID}:  # A stream may begin with a snapshot of a branch.
        _check_one_state(given, identifier)
    if BRANCH in given:
        table.at(branch=given[BRANCH])
        return Pin(identifier, location, branch=given[BRANCH])
    if SNAPSHOT_ID in given:
        snapshot = table.metadata.snapshot_by_id(number_of(given, SNAPSHOT_ID) or 0)
        return Pin(identifier, location, None if snapshot is None else snapshot.snapshot_id)
    snapshot = table.at(as_of=moment_of(given, AS_OF_TIMESTAMP), tag=given.get(TAG)).snapshot
    assert snapshot is not None, "the chosen snapshot exists"
    return Pin(identifier, location, snapshot.snapshot_id)


def check_named_state(identifier: tuple[str, ...], arguments: Mapping[str, Any]) -> None:
    """Raises InvalidArgumentError if a read of `db.t.branch_x`, whose name selects the state, has another argument that
    does. Exception: a stream of a branch may start at a snapshot of it."""
    for argument, clause in _TIME_TRAVEL.items():
        if arguments.get(argument) is not None:
            raise _two_states(identifier, "its name", clause)
    given = _folded(arguments.get("options", {}))
    if given and not (identifier[-1].startswith("branch_") and given.keys() == {SNAPSHOT_ID}):
        raise _two_states(identifier, "its name", *given)


@method("check_read")
def check_read(session: Session, request: Request) -> None:
    """ST-6: check the options of a batch read. Raises UnknownOptionError, InvalidArgumentError or
    SnapshotNotFoundError."""
    pin = Pin.from_json(request.arguments["pin"])
    given = {
        name: value
        for name, value in _folded(request.arguments["options"]).items()
        if not name.startswith(_INTERNAL) and name not in {known.casefold() for known in _OF_SPARK}
    }
    where = f"a read of {'.'.join(pin.table)}"
    check_options(given, (*STATE_OPTIONS, *APPENDS_OPTIONS, *_SIZES, *_IDLE), where=where)
    warn_of_idle_options(given, _IDLE, where=where)
    _check_one_state(given, pin.table)
    for name in _SIZES:
        size = number_of(given, name)
        if size is not None and size < 1:
            raise InvalidArgumentError(f"option {name} must be a number of bytes, at least 1, not {size}.")
    appends = [name for name in APPENDS_OPTIONS if name in given]
    if appends and {SNAPSHOT_ID, AS_OF_TIMESTAMP, TAG} & given.keys():
        raise _two_states(pin.table, *appends, *(name for name in STATE_OPTIONS if name in given))
    if appends and pin.snapshot_id is not None:
        raise _two_states(pin.table, *appends, f"the chosen snapshot {pin.snapshot_id}")
    if SNAPSHOT_ID in given and pin.snapshot_id is None:
        session.pinned(pin).at(snapshot_id=number_of(given, SNAPSHOT_ID))
        raise _two_states(pin.table, f"the name of branch {pin.branch}", SNAPSHOT_ID)


def _folded(options: Mapping[str, str]) -> dict[str, str]:
    return {name.casefold(): value for name, value in options.items()}


def _check_one_state(given: Mapping[str, str], identifier: tuple[str, ...]) -> None:
    """ST-6: raise InvalidArgumentError for options that select more than one state."""
    names = [name for name in STATE_OPTIONS if name in given]
    if len(names) > 1:
        raise _two_states(identifier, *names)


def _two_states(identifier: tuple[str, ...], *names: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"a read of {'.'.join(identifier)}: {' and '.join(names)} both choose a state; pass only one of them."
    )
