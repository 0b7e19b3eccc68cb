"""Runs an operation: stages and commits it, and stages it again if another commit invalidated what it read."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any

import pyarrow as pa

from tableformat.errors import CommitConflictError, CorruptFileError, ScopeChangedError
from tableformat.operations.options import CommitOptions
from tableformat.operations.staging.draft import Draft
from tableformat.operations.staging.result import CommitResult
from tableformat.write.rows.rows import as_reader

_STAGE_ATTEMPTS = 5
"""Maximum number of times that an operation that reads the table is staged from the start. Blind operations never need
a second time."""


def run_verb(
    verb: Callable[[Draft], None], new_draft: Callable[[], Draft], options: CommitOptions, *, one_shot: bool
) -> CommitResult:
    """Run one operation in its own snapshot.

    An operation that read the table, such as `delete(mode="scan")`, is run again on the newest snapshot if a concurrent
    commit changed what it read, or expired its snapshot. This is not possible if its rows come from a reader that can
    be consumed only once. Files of a failed attempt are removed before the error reaches the caller.
    """
    started = time.perf_counter()
    attempts = 0
    for attempt in range(1, _STAGE_ATTEMPTS + 1):
        draft = new_draft()
        draft.attempt = 0 if one_shot else attempt
        draft.keep_unchanged(options.if_unchanged_since)
        try:
            if draft.is_applied(options):
                return draft.unchanged(already_applied=True, started=started)
            with draft.removing_files_on_failure():
                verb(draft)
                result = draft.commit(options, started=started)
        except ScopeChangedError:
            raise
        except CommitConflictError:
            if one_shot or attempt == _STAGE_ATTEMPTS:
                raise
            attempts += 1
            draft.refresh()
            continue
        except CorruptFileError:
            # The handle has kept a snapshot that has expired: its files are deleted, but nothing is damaged.
            if one_shot or attempt == _STAGE_ATTEMPTS or not draft.has_expired():
                raise
            attempts += 1
            continue
        # Attempts are commit attempts: an operation with nothing left to do has none (CP-17).
        return replace(result, attempts=result.attempts + attempts) if result.attempts else result
    raise AssertionError("the last attempt returns or raises")


def dry_run_verb(verb: partial[None], new_draft: Callable[[], Draft], options: CommitOptions) -> CommitResult:
    """The rows that an operation would add and delete at the head of the draft's branch. Nothing is committed.

    The operation is staged as requested, so that its errors are also raised here. A blind delete counts no rows, so it
    is staged again in the form that finds its rows. `verb` can be staged twice.
    """
    started = time.perf_counter()
    draft = new_draft()
    draft.keep_unchanged(options.if_unchanged_since)
    if draft.is_applied(options):
        return replace(draft.unchanged(already_applied=True, started=started), dry_run=True)
    try:
        verb(draft)
        draft.check_unchanged()
        if not draft.counts_deleted_rows:
            draft.discard()
            draft = new_draft()
            draft.find_deleted_rows()
            _finding_rows(verb)(draft)
        return draft.dry_run_result(started=started)
    finally:
        draft.discard()


def _finding_rows(verb: partial[None]) -> partial[None]:
    """The operation in the form that finds its rows, if it has a `mode`."""
    has_modes = "mode" in signature(verb.func).parameters
    return partial(verb.func, **{**verb.keywords, "mode": "scan"}) if has_modes else verb


def repeatable(verb: partial[None], rows: Any) -> partial[None]:
    """The operation with rows that can be read twice. Rows from a one-shot reader are held in memory."""
    if not is_one_shot(rows):
        return verb
    held = as_reader(rows).read_all()
    return partial(verb.func, **{name: held if value is rows else value for name, value in verb.keywords.items()})


def held(rows: Any, what: str = "rows") -> Any:
    """The rows as an Arrow table if they can be read only once; otherwise unchanged."""
    return as_reader(rows, what=what).read_all() if is_one_shot(rows) else rows


def is_one_shot(rows: Any) -> bool:
    """Whether the rows can be read only once, so that an operation cannot be staged a second time."""
    replayable = (pa.Table, pa.RecordBatch, list, tuple, dict, type(None))
    return not isinstance(rows, replayable) and (hasattr(rows, "read_next_batch") or hasattr(rows, "__next__"))
