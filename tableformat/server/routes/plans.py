"""Plans on the server: the tasks of a scan of any snapshot, branch or tag, with row deletes only.

A client that asks for a plan gets it for the snapshot that it names. If keyed deletes are pending in it, the server
plans its conversion. Large plans are answered in pages, which the server keeps until they are fetched.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from pyiceberg.catalog.rest.scan_planning import PlanTableScanRequest
from pyiceberg.conversions import to_json
from pyiceberg.exceptions import NoSuchPlanTaskError
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import PrimitiveType
from starlette.responses import Response

from tableformat.errors import SnapshotNotFoundError, UnsupportedFeatureError
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import ContentFile, DataFile, DeleteFile
from tableformat.metadata.snapshot_choice import view_at
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.planner import plan_scan
from tableformat.server.answers import json_answer, nothing
from tableformat.server.context import ServerContext, UnfetchedPlan
from tableformat.server.requests import ApiRequest
from tableformat.server.routes.route import Route

_PAGE_TASKS: Final = 2_000


def _plan(server: ServerContext, request: ApiRequest) -> Response:
    body = request.json()
    asked = PlanTableScanRequest.model_validate(body)
    if asked.start_snapshot_id is not None:
        raise UnsupportedFeatureError("incremental scans are not planned here. Plan them in the client.")
    table = server.catalog.iceberg.load_table(request.identifier("table"))
    snapshot_id = asked.snapshot_id or table.metadata.current_snapshot_id
    if snapshot_id is None:
        return json_answer({"status": "completed", "plan-id": _token(), "file-scan-tasks": []})
    snapshot = snapshot_by_id(table.metadata, snapshot_id)
    if snapshot is None:
        raise SnapshotNotFoundError(f"no snapshot {snapshot_id}; it may have expired.")
    converted = server.tables.conversion_of(table, snapshot)
    view = view_at(table.metadata, table.io, converted.snapshot_id)
    # A filter whose names are in another case is applied by the client alone.
    where = asked.filter if asked.case_sensitive else None
    plan = UnfetchedPlan(view, plan_scan(view, where).tasks, body.get("filter"))
    return json_answer({"status": "completed", "plan-id": _token(), **_page(server, plan)})


def _tasks(server: ServerContext, request: ApiRequest) -> Response:
    token = str(request.json()["plan-task"])
    plan = server.plans.get(token)
    if plan is None:
        raise NoSuchPlanTaskError(f"no plan task {token!r:.80}: plan the scan again")
    return json_answer(_page(server, plan))


def _cancel(server: ServerContext, request: ApiRequest) -> Response:
    """Plans are complete when they are answered, so that there is nothing to stop."""
    del server, request
    return nothing()


def _page(server: ServerContext, plan: UnfetchedPlan) -> dict[str, Any]:
    """The first tasks, and a token for the others."""
    view = plan.view
    deletes: dict[tuple[str, int | None], int] = {}
    delete_files: list[dict[str, Any]] = []
    answered: list[dict[str, Any]] = []
    for task in plan.tasks[:_PAGE_TASKS]:
        references = []
        for delete in _row_deletes(task):
            key = (delete.file_path, delete.content_offset)
            if key not in deletes:
                deletes[key] = len(delete_files)
                delete_files.append(_delete_json(view, delete))
            references.append(deletes[key])
        described: dict[str, Any] = {"data-file": _data_json(view, task.data_file)}
        if plan.where is not None:
            described["residual-filter"] = plan.where
        if references:
            described["delete-file-references"] = references
        answered.append(described)
    page: dict[str, Any] = {"file-scan-tasks": answered}
    if delete_files:
        page["delete-files"] = delete_files
    rest = replace(plan, tasks=plan.tasks[_PAGE_TASKS:])
    if rest.tasks:
        token = _token()
        server.plans.put(token, rest, len(rest.tasks))
        page["plan-tasks"] = [token]
    return page


def _row_deletes(task: FileScanTask) -> Iterator[DeleteFile]:
    assert not task.range_deletes, "the snapshot is converted"
    assert not task.range_delete_files, "the snapshot is converted"
    assert not task.equality_deletes, "the snapshot is converted"
    yield from task.delete_files


def _data_json(view: SnapshotView, file: DataFile) -> dict[str, Any]:
    described = {**_file_json(view, file), "content": "data"}
    if file.first_row_id is not None:
        described["first-row-id"] = file.first_row_id
    return described


def _delete_json(view: SnapshotView, file: DeleteFile) -> dict[str, Any]:
    optional: Mapping[str, Any] = {
        "referenced-data-file": file.referenced_data_file,
        "content-offset": file.content_offset,
        "content-size-in-bytes": file.content_size_bytes,
    }
    stated = {name: value for name, value in optional.items() if value is not None}
    return {**_file_json(view, file), "content": "position-deletes", **stated}


def _file_json(view: SnapshotView, file: ContentFile) -> dict[str, Any]:
    return {
        "spec-id": file.spec_id,
        "partition": _partition_json(view.metadata.schema(), view.spec(file.spec_id), file.partition),
        "file-path": file.file_path,
        "file-format": file.file_format.lower(),
        "file-size-in-bytes": file.file_size_bytes,
        "record-count": file.record_count,
    }


def _partition_json(schema: Schema, spec: PartitionSpec, values: Sequence[Any]) -> list[Any]:
    """The values in the JSON form of single values (Iceberg table specification, appendix D)."""
    types = [cast(PrimitiveType, field.field_type) for field in spec.partition_type(schema).fields]
    return [None if value is None else to_json(kind, value) for kind, value in zip(types, values, strict=True)]


def _token() -> str:
    return secrets.token_urlsafe(18)


ROUTES: Final = (
    Route("POST", "namespaces/{namespace}/tables/{table}/plan", _plan),
    Route("POST", "namespaces/{namespace}/tables/{table}/tasks", _tasks),
    Route("DELETE", "namespaces/{namespace}/tables/{table}/plan/{plan}", _cancel),
)
