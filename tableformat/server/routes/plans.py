"""Plans on the server: the tasks of a scan of any snapshot, branch or tag, with row deletes only.

A client that asks for a plan gets it for the snapshot that it names. If keyed deletes are pending in it, the server
plans its conversion. Large plans are answered in pages.
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
from pyiceberg.table import Table
from pyiceberg.types import PrimitiveType
from starlette.responses import Response

from tableformat.errors import SnapshotNotFoundError, UnsupportedFeatureError
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import ContentFile, DataFile, DeleteFile
from tableformat.metadata.snapshot_choice import view_at
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.server.answers import json_answer, nothing
from tableformat.server.context import ServerContext
from tableformat.server.planning import PlanPosition
from tableformat.server.requests import ApiRequest
from tableformat.server.routes.route import Route


def _plan(server: ServerContext, request: ApiRequest) -> Response:
    body = request.json()
    asked = PlanTableScanRequest.model_validate(body)
    if asked.start_snapshot_id is not None:
        raise UnsupportedFeatureError("incremental scans are not planned here. Plan them in the client.")
    table = server.catalog.iceberg.load_table(request.identifier("table"))
    snapshot_id = asked.snapshot_id or table.metadata.current_snapshot_id
    if snapshot_id is None:
        return json_answer({"status": "completed", "plan-id": _new_id(), "file-scan-tasks": []})
    position = PlanPosition(snapshot_id, body.get("filter"), asked.case_sensitive)
    return json_answer({"status": "completed", "plan-id": _new_id(), **_page(server, table, position)})


def _tasks(server: ServerContext, request: ApiRequest) -> Response:
    position = PlanPosition.of_token(str(request.json()["plan-task"]))
    table = server.catalog.iceberg.load_table(request.identifier("table"))
    if snapshot_by_id(table.metadata, position.snapshot_id) is None:
        raise NoSuchPlanTaskError(f"snapshot {position.snapshot_id} of the plan has expired: plan the scan again")
    return json_answer(_page(server, table, position))


def _cancel(server: ServerContext, request: ApiRequest) -> Response:
    """Plans are complete when they are answered, so that there is nothing to stop."""
    del server, request
    return nothing()


def _page(server: ServerContext, table: Table, position: PlanPosition) -> dict[str, Any]:
    """The next tasks of the plan, and a token for the others."""
    snapshot = snapshot_by_id(table.metadata, position.snapshot_id)
    if snapshot is None:
        raise SnapshotNotFoundError(f"no snapshot {position.snapshot_id}; it may have expired.")
    converted = server.tables.conversion_of(table, snapshot)
    view = view_at(table.metadata, table.io, converted.snapshot_id)
    tasks, following = server.planning.page(view, replace(position, snapshot_id=converted.snapshot_id))
    deletes: dict[tuple[str, int | None], int] = {}
    delete_files: list[dict[str, Any]] = []
    answered: list[dict[str, Any]] = []
    for task in tasks:
        references = []
        for delete in _row_deletes(task):
            key = (delete.file_path, delete.content_offset)
            if key not in deletes:
                deletes[key] = len(delete_files)
                delete_files.append(_delete_json(view, delete))
            references.append(deletes[key])
        described: dict[str, Any] = {"data-file": _data_json(view, task.data_file)}
        if position.filter is not None:
            described["residual-filter"] = position.filter
        if references:
            described["delete-file-references"] = references
        answered.append(described)
    page: dict[str, Any] = {"file-scan-tasks": answered}
    if delete_files:
        page["delete-files"] = delete_files
    if following is not None:
        page["plan-tasks"] = [following.token()]
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


def _new_id() -> str:
    return secrets.token_urlsafe(18)


ROUTES: Final = (
    Route("POST", "namespaces/{namespace}/tables/{table}/plan", _plan),
    Route("POST", "namespaces/{namespace}/tables/{table}/tasks", _tasks),
    Route("DELETE", "namespaces/{namespace}/tables/{table}/plan/{plan}", _cancel),
)
