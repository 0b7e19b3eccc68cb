"""DELETE ... WHERE (a, b) IN (SELECT ...) by the first columns of the key: Spark finds the keys, and no row is read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import UUIDType

from spark_ext.service.registry import Request, method
from spark_ext.service.session import Pin, Session, handle_of
from spark_ext.service.writes.commits import reading
from spark_ext.service.writes.deletes import DeleteOnBranch, must_scan
from tableformat.errors import CommitConflictError
from tableformat.keys.table_key import key_field_ids, key_names
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.staging.draft import Draft
from tableformat.operations.verbs.delete_prefix import names_by_now, stage_prefixes
from tableformat.operations.verbs.explain_delete import explain_delete_of_keys
from tableformat.properties import BLIND_DELETES_DEFAULT, BLIND_OFF, blind_deletes
from tableformat.write.rows.conform import ConformedRows


@method("can_delete_keys")
def can_delete_keys(session: Session, request: Request) -> bool:
    """SP-102: whether a delete by these columns is blind. Not for a uuid, which is text in Spark and has several
    spellings."""
    view = session.view(Pin.from_json(request.arguments["pin"]))
    columns = request.arguments["columns"]
    return (
        not must_scan(request)
        and blind_deletes(view.metadata.properties) != BLIND_OFF
        and _lead_the_key(view, columns)
        and not any(isinstance(view.schema.find_field(name).field_type, UUIDType) for name in columns)
    )


def _lead_the_key(view: SnapshotView, columns: Sequence[str]) -> bool:
    key = key_names(view.schema, key_field_ids(view.schema, view.metadata.properties))
    return len(set(columns)) == len(columns) and set(columns) == set(key[: len(columns)])


@method("explain_delete_keys")
def explain_delete_keys(session: Session, request: Request) -> list[list[str]]:
    """SQ-7: the output of `delete_keys`, and the reason."""
    pin = Pin.from_json(request.arguments["pin"])
    draft = Draft(session.load(pin.table, branch=pin.branch).iceberg, pin.branch)
    part = explain_delete_of_keys(draft, request.arguments["columns"])
    return [[part.form, part.why]]


@method("delete_keys")
def delete_keys(session: Session, request: Request) -> dict[str, Any]:
    """SP-102: delete the rows whose columns equal a key. Requires that `can_delete_keys` returned true.

    ST-2: `reads` are the predicates of the subquery's scans of this table. If there are any, matching rows that were
    added concurrently are a conflict.
    """
    delete_on = DeleteOnBranch.of(session, request, {})
    planned = session.view(delete_on.pin).schema
    keys = _in_types_of(planned, pa.ipc.open_stream(request.parts[0]).read_all())
    reads = (request.arguments["reads"] or []) if delete_on.branch == delete_on.pin.branch else []
    verb = reading(reads, partial(_stage, keys=keys, planned=planned), relies=False)
    if reads:
        return delete_on.commit(session, handle_of(session.pinned(delete_on.pin)), verb, one_shot=True)
    table = session.load(delete_on.pin.table, branch=delete_on.branch)
    return delete_on.commit(session, table.iceberg, verb, one_shot=False)


def _in_types_of(schema: Schema, keys: pa.Table) -> pa.Table:
    columns = Schema(*(schema.find_field(name) for name in keys.column_names))
    return ConformedRows(keys.to_reader(), columns).to_reader().read_all()


def _stage(draft: Draft, *, keys: pa.Table, planned: Schema) -> None:
    draft.begin_verb()
    draft.act_as("delete")
    if not keys.num_rows:
        return
    if not _lead_the_key(draft.view, names_by_now(keys.column_names, planned, draft.schema)):
        raise CommitConflictError(
            f"the key of {draft.name} was changed while a delete by its first columns ran. Nothing was deleted. Run "
            "the statement again."
        )
    encoding = None if draft.blind_deletes == BLIND_DELETES_DEFAULT else draft.blind_deletes
    stage_prefixes(draft, keys, encoding=encoding, named_in=planned)
