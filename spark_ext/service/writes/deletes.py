"""DELETE and TRUNCATE without a Spark job: remove whole files from the table, or write one blind delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from pyiceberg.expressions import BooleanExpression
from pyiceberg.schema import Schema, index_by_name
from pyiceberg.table import Table as LoadedTable

from spark_ext.service.registry import Request, method
from spark_ext.service.session import DELETE_MODE, Pin, Session
from spark_ext.service.states.named_states import names_state
from spark_ext.service.states.session_settings import options_of_delete
from spark_ext.service.states.write_audit_publish import WriteAuditPublish
from spark_ext.service.wire.expressions import SparkExpression, columns_of, exact_filter
from spark_ext.service.writes.whole_files import takes_whole_files
from spark_ext.service.writes.write_options import (
    APPLICATION_ID,
    BATCH_ID,
    BRANCH,
    OF_SPARK,
    SNAPSHOT_PROPERTY,
    WriteOptions,
)
from tableformat.errors import CommitConflictError, UnknownOptionError
from tableformat.filters.bound_filter import bind_filter
from tableformat.keys.table_key import key_field_ids
from tableformat.maintenance.upkeep.after_commit import after_commit
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.options import CommitOptions, one_of
from tableformat.operations.row_lookup.key_condition import key_conditions
from tableformat.operations.staging.draft import Draft
from tableformat.operations.staging.run import run_verb
from tableformat.operations.verbs.delete import delete
from tableformat.operations.verbs.explain_delete import DeletePart, at_most, explain_blind_delete, of_whole_files
from tableformat.properties import (
    BLIND_DELETES,
    BLIND_DELETES_DEFAULT,
    BLIND_OFF,
    COPY_ON_WRITE,
    blind_deletes,
    row_level_mode,
)
from tableformat.scan.planner import plan_scan

DELETE_MODES: Final = ("auto", "scan")
_ASKED_FOR: Final = f"the session's {DELETE_MODE} is 'scan'"

Verb: TypeAlias = Callable[[Draft], None]


@method("can_delete_where")
def can_delete_where(session: Session, request: Request) -> bool:
    """SP-5: whether the rows can be deleted without searching for them. If false, Spark finds the rows and they are
    deleted by position."""
    pin = Pin.from_json(request.arguments["pin"])
    view = session.view(pin)
    where = exact_filter(request.arguments["predicates"], view.schema)
    if where is None:
        return False
    return takes_whole_files(view, where, pin.branch) or (not must_scan(request) and _is_blind(view, where))


@method("explain_delete")
def explain_delete(session: Session, request: Request) -> list[list[str]]:
    """SQ-7: the output of a DELETE with these predicates, and the reason, as decided by `can_delete_where` and
    `delete_where`.

    `predicates` is null if Spark has no filter for the condition, and `condition` is its text.
    """
    pin, predicates = Pin.from_json(request.arguments["pin"]), request.arguments["predicates"]
    view = session.view(pin)
    where = None if predicates is None else exact_filter(predicates, view.schema)
    if where is not None and takes_whole_files(view, where, pin.branch):
        return [_told(of_whole_files(plan_scan(view, where).tasks))]
    if where is not None and not must_scan(request) and _is_blind(view, where):
        draft = Draft(session.load(pin.table, branch=pin.branch).iceberg, pin.branch)
        return [_told(part) for part in explain_blind_delete(draft, where)]
    is_exact = where is not None
    is_asked_for = is_exact and must_scan(request)
    why = _ASKED_FOR if is_asked_for else _why_rows_are_found(view, request.arguments["condition"], is_exact=is_exact)
    found = [_form_of_found_rows(view), f"{why}, so Spark finds the rows"]
    return [found] if where is None else [found, _told(at_most(plan_scan(view, where).tasks))]


def must_scan(request: Request) -> bool:
    """SP-114: whether the session requires that rows are searched for, even if a blind delete were possible."""
    mode = request.arguments["mode"]
    return mode is not None and one_of(mode.lower(), DELETE_MODES, option=f"the setting {DELETE_MODE}") == "scan"


def _form_of_found_rows(view: SnapshotView) -> str:
    if row_level_mode(view.metadata.properties, "delete") == COPY_ON_WRITE:
        return "rewritten data files"
    return "deletion vectors" if view.metadata.format_version >= 3 else "positions"


def _told(part: DeletePart) -> list[str]:
    return [part.form, part.why]


def _why_rows_are_found(view: SnapshotView, condition: str, *, is_exact: bool) -> str:
    if not is_exact:
        return f"{condition} cannot be applied exactly without reading rows"
    allowed = blind_deletes(view.metadata.properties)
    if allowed == BLIND_OFF:
        return f"the table properties do not allow blind deletes ({BLIND_DELETES})"
    if allowed != BLIND_DELETES_DEFAULT:
        return f"{condition} does not only compare columns with values, and {BLIND_DELETES} is {allowed!r}"
    return (
        f"{condition} does not only compare columns with values and limit at most one more column to an interval, "
        "without floating point columns, or the table has no key"
    )


@method("delete_where")
def delete_where(session: Session, request: Request) -> dict[str, Any]:
    """Delete the rows that the predicates match, or all rows without predicates. Requires that `can_delete_where`
    returned true."""
    arguments = request.arguments
    delete_on = DeleteOnBranch.of(session, request, arguments["options"])
    table = session.load(delete_on.pin.table, branch=delete_on.branch)
    planned = session.view(delete_on.pin).schema
    where = still_exact_filter(arguments["predicates"], table.view.schema, planned=planned, subject="a delete")
    mode = "scan" if takes_whole_files(table.view, where, table.branch) else "auto"
    return delete_on.commit(session, table.iceberg, partial(delete, where=where, mode=mode), one_shot=False)


@dataclass(frozen=True, slots=True)
class DeleteOnBranch:
    """The target branch and the commit options of a DELETE without a Spark job."""

    pin: Pin
    """The state that the statement reads."""
    branch: str
    options: CommitOptions

    @classmethod
    def of(cls, session: Session, request: Request, given: Mapping[str, str]) -> DeleteOnBranch:
        """`given` are the options of the statement, which Spark passes since 4.3. Raises UnknownOptionError for options
        that do not apply to a delete."""
        arguments = request.arguments
        pin = Pin.from_json(arguments["pin"])
        settings = {**options_of_delete(arguments["settings"]), **given}
        options = WriteOptions.parse(settings, table=".".join(pin.table), default_branch=pin.branch)
        known = (BRANCH, APPLICATION_ID, BATCH_ID, f"{SNAPSHOT_PROPERTY}<name>")
        for name in given:
            if name.casefold() not in (*known, *OF_SPARK) and not name.casefold().startswith(SNAPSHOT_PROPERTY):
                raise UnknownOptionError(name, known, where="a delete")
        wap = WriteAuditPublish.of(arguments, session.pinned(pin))
        is_named = options.names_branch or names_state(request, pin)
        branch = wap.branch_written(session, session.pinned(pin), options.branch, is_named=is_named)
        application_id, batch_id = options.batch or (arguments["application_id"], arguments["batch_id"])
        committing = CommitOptions(
            application_id=application_id,
            batch_id=batch_id,
            snapshot_properties={**options.snapshot_properties, **wap.snapshot_properties},
            is_staged=wap.wap_id is not None,
        )
        return cls(pin, branch, committing)

    def commit(self, session: Session, iceberg: LoadedTable, verb: Verb, *, one_shot: bool) -> dict[str, Any]:
        """Run the operation on the loaded table, either once or until it meets no conflict."""
        result = run_verb(verb, partial(Draft, iceberg, self.branch), self.options, one_shot=one_shot)
        if result.attempts and not self.options.is_staged:
            after_commit(iceberg, self.branch, executor=session.upkeep_executor)
        return {"snapshot_id": result.snapshot_id, "already_applied": result.already_applied}


def still_exact_filter(
    predicates: Sequence[SparkExpression], schema: Schema, *, planned: Schema, subject: str
) -> BooleanExpression:
    """SP-83: the exact filter of the predicates, which existed when the statement was `planned`. Raises
    CommitConflictError if one of its names does not exist, or belongs to a different column, in the current schema."""
    where = exact_filter(predicates, schema)
    then, now = index_by_name(planned), index_by_name(schema)
    names = {".".join(column) for predicate in predicates for column in columns_of(predicate)}
    if where is None or any(then.get(name) != now.get(name) for name in names):
        raise CommitConflictError(
            f"columns of the filter of {subject} were changed while the statement ran. Nothing was changed. Run the "
            "statement again."
        )
    return where


def _is_blind(view: SnapshotView, where: BooleanExpression) -> bool:
    """SP-22: whether a range or equality delete, of the kinds that the table allows, matches exactly the same rows."""
    conditions = key_conditions(bind_filter(where, view.schema))
    allowed = blind_deletes(view.metadata.properties)
    if conditions is None or allowed == BLIND_OFF:
        return False
    if allowed != BLIND_DELETES_DEFAULT:
        return all(condition.points and condition.interval is None for condition in conditions)
    has_key = bool(key_field_ids(view.schema, view.metadata.properties))
    return all(condition.points or condition.interval or has_key for condition in conditions)
