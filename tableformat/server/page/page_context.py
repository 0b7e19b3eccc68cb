"""The state that all pages of a server share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from tableformat.server.context import ServerContext
from tableformat.server.page.job_runner import JobRunner
from tableformat.server.page.page_request import PageRequest
from tableformat.server.page.queries import Queries
from tableformat.server.page.rendering import rendered
from tableformat.server.page.sessions import Sessions


@dataclass(frozen=True, slots=True)
class PageContext:
    """The server, and the state of its page."""

    server: ServerContext
    sessions: Sessions
    queries: Queries
    jobs: JobRunner

    @staticmethod
    def of(server: ServerContext) -> PageContext:
        return PageContext(server, Sessions(server.access), Queries(server.catalog), JobRunner(server.catalog))

    @property
    def lake(self) -> str:
        """The displayed name of the catalog."""
        return str(self.server.catalog.iceberg.properties.get("warehouse", self.server.catalog.iceberg.name))

    def page(self, template: str, request: PageRequest, values: Mapping[str, Any], status: int = 200) -> Response:
        """A page for the session of the request."""
        shared = {
            "lake": self.lake,
            "request": request,
            "form_token": request.session.form_token,
            "has_login": not self.server.access.is_open,
            "allow_jobs": self.server.options.allow_jobs,
            "refresh_seconds": None,
        }
        return rendered(template, {**shared, **values}, status)
