"""Plans of the server, in pages that any server of the catalog can continue (SV-11).

    kept manifests    m1 m2 m3 m4 m5 ...     those that the filter does not exclude
    chunks            [m1 m2] [m3 m4] ...    planned one at a time, when a page needs them
    token             snapshot, filter, first manifest of the chunk, number of its tasks that were answered

A snapshot never changes, so a token states everything that the next page needs. Chunks are kept for the next pages and
for other clients that ask for the same plan.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import BoundedSemaphore
from typing import Any, Final
from uuid import UUID

from pyiceberg.catalog.rest.scan_planning import PlanTableScanRequest
from pyiceberg.exceptions import NoSuchPlanTaskError
from pyiceberg.expressions import BooleanExpression

from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.planner import plan_scan, unexcluded_data_manifests
from tableformat.storage.bounded_cache import BoundedCache

_PAGE_TASKS: Final = 2_000
_CHUNK_FILES: Final = 20_000
"""Manifests are planned together up to this number of live files, or one by one."""
_KEPT_TASKS: Final = 100_000
"""Tasks of all kept chunks, about a kilobyte each."""
_AT_ONCE: Final = os.cpu_count() or 1
"""More concurrent plans need more memory and are not faster."""
_OVERHEAD_TASKS: Final = 10
"""What a kept chunk without tasks counts."""


@dataclass(frozen=True, slots=True)
class PlanPosition:
    """Where the next page of a plan begins."""

    snapshot_id: int
    """A snapshot without pending keyed deletes."""
    filter: Any
    """The filter of the request, as JSON; None without one."""
    is_case_sensitive: bool = True
    first_manifest: int = 0
    """The number of kept manifests before the chunk."""
    answered_tasks: int = 0
    """The number of tasks of the chunk in earlier pages."""

    @property
    def where(self) -> BooleanExpression | None:
        """The filter; None without one, and for names in another case, which the client resolves."""
        if self.filter is None or not self.is_case_sensitive:
            return None
        return PlanTableScanRequest.model_validate({"filter": self.filter}).filter

    def token(self) -> str:
        """The position as the text that clients send back."""
        fields = [self.snapshot_id, self.filter, self.is_case_sensitive, self.first_manifest, self.answered_tasks]
        return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()

    @staticmethod
    def of_token(token: str) -> PlanPosition:
        """Raises NoSuchPlanTaskError for a text that is not a token."""
        try:
            snapshot_id, where, is_case_sensitive, *numbers = json.loads(base64.urlsafe_b64decode(token.encode()))
            first_manifest, answered_tasks = map(int, numbers)
            if first_manifest < 0 or answered_tasks < 0:
                raise ValueError(token)
            return PlanPosition(int(snapshot_id), where, bool(is_case_sensitive), first_manifest, answered_tasks)
        except (ValueError, TypeError, RecursionError) as error:
            raise NoSuchPlanTaskError(f"no plan task {token!r:.80}: plan the scan again") from error


@dataclass(frozen=True, slots=True)
class _Chunk:
    tasks: Sequence[FileScanTask]
    next_manifest: int | None
    """The number of kept manifests before the next chunk; None after the last one."""


class Planning:
    """Plans pages for many threads."""

    def __init__(self) -> None:
        self._chunks: BoundedCache[tuple[UUID, str], _Chunk] = BoundedCache(_KEPT_TASKS)
        self._running = BoundedSemaphore(_AT_ONCE)

    def page(self, view: SnapshotView, position: PlanPosition) -> tuple[list[FileScanTask], PlanPosition | None]:
        """The tasks of the page at the position, and the position of the next page; None after the last one."""
        tasks: list[FileScanTask] = []
        while True:
            chunk = self._chunk(view, position)
            end = position.answered_tasks + _PAGE_TASKS - len(tasks)
            tasks += chunk.tasks[position.answered_tasks : end]
            if end < len(chunk.tasks):
                return tasks, replace(position, answered_tasks=end)
            if chunk.next_manifest is None:
                return tasks, None
            position = replace(position, first_manifest=chunk.next_manifest, answered_tasks=0)
            if len(tasks) == _PAGE_TASKS:
                return tasks, position

    def _chunk(self, view: SnapshotView, position: PlanPosition) -> _Chunk:
        key = (view.metadata.table_uuid, replace(position, answered_tasks=0).token())
        kept = self._chunks.get(key)
        if kept is not None:
            return kept
        with self._running:
            kept = self._chunks.get(key)
            if kept is None:
                kept = _planned(view, position)
                self._chunks.put(key, kept, len(kept.tasks) + _OVERHEAD_TASKS)
            return kept


def _planned(view: SnapshotView, position: PlanPosition) -> _Chunk:
    where = position.where
    manifests = unexcluded_data_manifests(view, where)
    begin = end = position.first_manifest
    file_count = 0
    while end < len(manifests) and (end == begin or file_count < _CHUNK_FILES):
        file_count += manifests[end].added_files_count + manifests[end].existing_files_count
        end += 1
    # Without the caches of other scans, whose Bloom filters would change what a later page counts from.
    context = MergeContext(view.metadata, view.io)
    plan = plan_scan(view, where, context=context, data_manifests=manifests[begin:end])
    return _Chunk(plan.tasks, end if end < len(manifests) else None)
