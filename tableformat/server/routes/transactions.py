"""Commits to several tables: all of them or none."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from tableformat.errors import InvalidArgumentError
from tableformat.server.answers import nothing
from tableformat.server.context import ServerContext
from tableformat.server.requests import ApiRequest, identifier_of
from tableformat.server.routes.route import Route
from tableformat.server.routes.tables import commit_request
from tableformat.server.send_commits import send_commits


def _commit(server: ServerContext, request: ApiRequest) -> Response:
    changes = [(identifier_of(each["identifier"]), each) for each in request.json()["table-changes"]]
    if not changes:
        raise InvalidArgumentError("table-changes is empty.")
    send_commits(
        server.catalog.iceberg, [(identifier, commit_request(identifier, change)) for identifier, change in changes]
    )
    for identifier, _ in changes:
        server.tables.committed(identifier)
    return nothing()


ROUTES: Final = (Route("POST", "transactions/commit", _commit, changes=True),)
