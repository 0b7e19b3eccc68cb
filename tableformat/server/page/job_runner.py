"""Maintenance jobs of the page: each runs in a thread, one at a time for a table."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Lock, Thread
from typing import Any, Final

from tableformat.catalogs.catalog import Catalog
from tableformat.errors import InvalidArgumentError, TableFormatError
from tableformat.server.answers import RefusedRequestError, described

logger = logging.getLogger(__name__)

_KEPT_JOBS: Final = 100
"""Finished jobs that are listed."""
_CONFIRMED_SECONDS: Final = 900
"""A job that removes data can be confirmed for so long after its dry run."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """A job that the page offers."""

    name: str
    what: str
    removes: bool = False
    """Whether it removes snapshots, rows or files, so that its dry run has to be confirmed."""


KINDS: Final[Mapping[str, JobKind]] = {
    kind.name: kind
    for kind in (
        JobKind("convert_deletes", "converts equality and range deletes, so that every engine reads the table"),
        JobKind("compact", "merges small files, and leaves out deleted rows"),
        JobKind("expire_snapshots", "removes old snapshots, and the files that only they need", removes=True),
        JobKind("run", "runs all jobs in a safe order, as far as they are due", removes=True),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job that was started, in its state of now."""

    id: str
    table: str
    kind: JobKind
    dry_run: bool
    started_at: float
    """Seconds since 1970."""
    ended_at: float | None = None
    done: int = 0
    total: int = 0
    unit: str = ""
    result: Any = None
    """The result of a job that completed."""
    problem: str = ""
    """Why the job failed."""
    is_cancelled: bool = False

    @property
    def is_running(self) -> bool:
        return self.ended_at is None

    @property
    def seconds(self) -> float:
        """How long the job has been running, or ran."""
        return (self.ended_at or time.time()) - self.started_at

    @property
    def can_be_confirmed(self) -> bool:
        """Whether the job is the recent dry run of a job that removes data."""
        ended_at = self.ended_at or 0.0
        is_recent = time.time() - ended_at < _CONFIRMED_SECONDS
        return self.kind.removes and self.dry_run and self.result is not None and is_recent


class _CancelledError(Exception):
    """Raised in a job's progress call to cancel the job."""


class JobRunner:
    """Starts jobs, and keeps their states. Safe for many threads."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = Lock()
        self._jobs: dict[str, Job] = {}

    def jobs(self, table: str | None = None) -> list[Job]:
        """The jobs of one table, or of all, newest first."""
        with self._lock:
            found = [job for job in self._jobs.values() if table in (None, job.table)]
        return found[::-1]

    def start(self, table: str, kind_name: str, *, dry_run: bool, confirms: str = "") -> Job:
        """Start a job. `confirms` is the id of its dry run, which a job that removes data needs.

        Raises InvalidArgumentError for an unknown job or one that is not confirmed, RefusedRequestError if another job
        of the table is running, and the errors of loading the table.
        """
        kind = KINDS.get(kind_name)
        if kind is None:
            raise InvalidArgumentError(f"no job {kind_name!r:.80}. The jobs are {', '.join(KINDS)}.")
        handle = self._catalog.load_table(table)
        job = Job(id=secrets.token_hex(8), table=table, kind=kind, dry_run=dry_run, started_at=time.time())
        with self._lock:
            if kind.removes and not dry_run:
                self._check_confirmed(table, kind, confirms)
            if any(other.is_running and other.table == table for other in self._jobs.values()):
                raise RefusedRequestError(409, "Conflict", f"another job of {table} is running. Wait until it ends.")
            self._jobs[job.id] = job
            for finished in [each.id for each in self._jobs.values() if not each.is_running][:-_KEPT_JOBS]:
                del self._jobs[finished]
        Thread(target=self._run, args=(job, handle.maintenance), name=f"job-{kind.name}").start()
        return job

    def cancel(self, job_id: str) -> None:
        """Cancel a running job at its next step. Its commits stay."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is not None and job.is_running:
                self._jobs[job_id] = replace(job, is_cancelled=True)

    def _check_confirmed(self, table: str, kind: JobKind, confirms: str) -> None:
        tried = self._jobs.get(confirms)
        if tried is None or tried.table != table or tried.kind != kind or not tried.can_be_confirmed:
            raise InvalidArgumentError(f"{kind.name} removes data: run its dry run first, look at it, and confirm it.")

    def _run(self, job: Job, maintenance: Any) -> None:
        def progress(done: int, total: int, unit: str) -> None:
            with self._lock:
                now = self._jobs[job.id] = replace(self._jobs[job.id], done=done, total=total, unit=unit)
            # A job does not keep a process alive that was asked to end.
            if now.is_cancelled or not threading.main_thread().is_alive():
                raise _CancelledError

        try:
            result = getattr(maintenance, job.kind.name)(dry_run=job.dry_run, progress=progress)
            self._end(job.id, result=result)
        except _CancelledError:
            self._end(job.id, problem="cancelled; what it had committed stays")
        except TableFormatError as error:
            self._end(job.id, problem=str(error))
        except Exception as error:  # noqa: BLE001  shown on the page; unexpected errors are logged
            self._end(job.id, problem=described(error)[2])

    def _end(self, job_id: str, *, result: Any = None, problem: str = "") -> None:
        with self._lock:
            self._jobs[job_id] = replace(self._jobs[job_id], ended_at=time.time(), result=result, problem=problem)
