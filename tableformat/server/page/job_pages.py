"""Pages of maintenance jobs: start, confirm, watch, cancel."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup
from starlette.responses import Response

from tableformat.markup import html
from tableformat.server.page.job_runner import KINDS, Job
from tableformat.server.page.page_context import PageContext
from tableformat.server.page.page_request import PageRequest
from tableformat.server.page.rendering import address, redirection, trusted
from tableformat.server.page.table_pages import table_page

_REFRESH_SECONDS = 2


@dataclass(frozen=True, slots=True)
class JobDisplay:
    """A job with its result as a part of a page."""

    job: Job
    result: Markup | None


def table_jobs(page: PageContext, request: PageRequest) -> Response:
    """The jobs of one table, and the forms that start them."""
    name = page.server.catalog.load_table(request.table).name
    jobs = page.jobs.jobs(name)
    values = {
        "kinds": list(KINDS.values()),
        "jobs": [_displayed(job) for job in jobs],
        "refresh_seconds": _REFRESH_SECONDS if any(job.is_running for job in jobs) else None,
        "is_running": any(job.is_running for job in jobs),
    }
    return table_page(page, request, "jobs", values)


def all_jobs(page: PageContext, request: PageRequest) -> Response:
    """The jobs of all tables."""
    jobs = page.jobs.jobs()
    is_running = any(job.is_running for job in jobs)
    values = {
        "jobs": [_displayed(job) for job in jobs],
        "refresh_seconds": _REFRESH_SECONDS if is_running else None,
    }
    return page.page("jobs.html", request, values)


def start(page: PageContext, request: PageRequest) -> Response:
    """Start a job, and display the jobs of its table."""
    table = page.server.catalog.load_table(request.table).name
    page.jobs.start(
        table,
        request.form.get("kind", ""),
        dry_run=request.form.get("dry_run") == "yes",
        confirms=request.form.get("confirms", ""),
    )
    return redirection(address("/table/jobs", name=table))


def cancel(page: PageContext, request: PageRequest) -> Response:
    """Cancel a job, and display the jobs of its table."""
    page.jobs.cancel(request.form.get("id", ""))
    return redirection(address("/table/jobs", name=request.table))


def _displayed(job: Job) -> JobDisplay:
    return JobDisplay(job, None if job.result is None else trusted(html.unstyled(job.result._repr_html_())))
