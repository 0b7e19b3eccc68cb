"""Commits to several tables: all of them or none."""

from __future__ import annotations

from typing import Final

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update import AddSnapshotUpdate
from starlette.responses import Response

from tableformat.commit.together import TableRequest, commit_together
from tableformat.server.answers import nothing
from tableformat.server.client_commits import catalog_commit, check_requirements, for_catalog
from tableformat.server.context import ServerContext
from tableformat.server.requests import ApiRequest, identifier_of
from tableformat.server.routes.route import Route
from tableformat.server.routes.tables import commit_request

_ATTEMPTS: Final = 8


def _commit(server: ServerContext, request: ApiRequest) -> Response:
    changes = [(identifier_of(each["identifier"]), each) for each in request.json()["table-changes"]]
    commits = [(identifier, commit_request(identifier, change)) for identifier, change in changes]
    backend = server.catalog.iceberg
    for attempt in range(1, _ATTEMPTS + 1):
        requests = []
        for identifier, commit in commits:
            table = backend.load_table(identifier)
            requirements, updates = catalog_commit(table.metadata, commit.requirements, commit.updates)
            check_requirements(table.metadata, requirements)
            requests.append(TableRequest(table, for_catalog(table, requirements), updates))
        try:
            commit_together(backend, requests)
        except CommitFailedException:
            if attempt == _ATTEMPTS:
                raise
            continue
        break
    for identifier, commit in commits:
        adds = any(isinstance(each, AddSnapshotUpdate) for each in commit.updates)
        server.tables.after_commit(identifier, adds_snapshot=adds)
    return nothing()


ROUTES: Final = (Route("POST", "transactions/commit", _commit, changes=True),)
