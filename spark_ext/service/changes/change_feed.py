"""The change feed: `SELECT ... FROM lake.db.t CHANGES FROM VERSION 3 TO VERSION 7`, `spark.read.changes(...)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.table.refs import MAIN_BRANCH

from spark_ext.service.changes.change_rows import FEED_COLUMNS, add_changes
from spark_ext.service.ddl.tables import describe_table
from spark_ext.service.reads.file_list import FileList
from spark_ext.service.registry import Answer, Request, method
from spark_ext.service.session import Pin, Session
from spark_ext.service.states.change_bounds import RANGE_OPTIONS, last_snapshot, snapshot_before
from spark_ext.service.states.named_states import is_state, pin_of_state
from spark_ext.service.states.option_values import BRANCH, CONSUMER, check_options
from spark_ext.service.wire.expressions import pruning_filter
from spark_ext.service.wire.spark_types import spark_schema
from tableformat.changes.changed_rows import changed_rows
from tableformat.changes.range import change_range
from tableformat.errors import InvalidArgumentError, TableNotFoundError
from tableformat.metadata.change_columns import schema_with_change_columns
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.history.consumers import consumer_of


@method("load_changes")
def load_changes(session: Session, request: Request) -> dict[str, Any]:
    """The table at the end of the range, described as by `load_table`, with the `feed_columns`.

    A range without an end has the table's current columns. The start is resolved when the range is read: a stream that
    continues from a checkpoint does not need it.
    """
    arguments = request.arguments
    options = {name.casefold(): value for name, value in arguments["options"].items()}
    pin = _pin(session, request.table, options.get(BRANCH, MAIN_BRANCH))
    view = session.view(pin)
    last = last_snapshot(view.metadata, view.snapshot, arguments["bounds"])
    if arguments["bounds"]["end"] is not None and last is not None:
        pin = replace(pin, snapshot_id=last.snapshot_id)
    schema_with_change_columns(session.view(pin).schema)  # A column of one of these names is an error now.
    return {**describe_table(session, pin), "feed_columns": spark_schema(Schema(*FEED_COLUMNS))}


def _pin(session: Session, identifier: tuple[str, ...], branch: str) -> Pin:
    """The table, or the table at a named state such as `db.t.branch_x`."""
    try:
        table = session.load(identifier, branch=branch)
    except TableNotFoundError:
        if len(identifier) < 3 or not is_state(identifier[-1]):
            raise
        return pin_of_state(session.load(identifier[:-1]), identifier[:-1], identifier[-1])
    return Pin(identifier, table.iceberg.metadata_location, branch=branch)


@method("change_files")
def change_files(session: Session, request: Request) -> Answer:
    """The files with the rows of a range, in the form of `scan_files`."""
    arguments = request.arguments
    name = ".".join(request.table)
    check_options(arguments["options"], (BRANCH, CONSUMER, *RANGE_OPTIONS), where=f"the changes of {name}")
    predicates = arguments["predicates"]
    view = session.view(Pin.from_json(arguments["pin"]))
    context = session.merge_context(view)
    first = _first(view, arguments, name)
    changes = change_range(replace(view, schema=schema_with_change_columns(view.schema)), first)
    where = pruning_filter(predicates, changes.view.schema)
    tasks = changed_rows(changes.view, changes.snapshots, where, context=context)
    files = FileList(view, context, arguments["columns"], predicates)
    add_changes(files, list(tasks), context)
    return files.answer()


def _first(view: SnapshotView, arguments: Mapping[str, Any], name: str) -> int | None:
    """CF-1: the snapshot after which the range begins, from its bound or from the position of a consumer (SS-16)."""
    consumer = {option.casefold(): value for option, value in arguments["options"].items()}.get(CONSUMER)
    if consumer is None:
        return snapshot_before(view.metadata, view.snapshot, arguments["bounds"])
    if arguments["bounds"]["start"] is not None:
        raise InvalidArgumentError(
            f"the changes of {name}: the option {CONSUMER} and a start both define the lower bound; pass only one of "
            "them."
        )
    return consumer_of(view.metadata, consumer).snapshot_id
