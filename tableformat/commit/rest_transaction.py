"""Several tables in one request of Iceberg's REST protocol. PyIceberg 0.12 has no call for it.

Source: Iceberg's REST catalog specification, `POST /v1/{prefix}/transactions/commit`, `CommitTransactionRequest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import Field
from pyiceberg.catalog.rest import Endpoint, HttpMethod, RestCatalog
from pyiceberg.catalog.rest.response import _handle_non_200_response
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchTableError,
    UnauthorizedError,
)
from pyiceberg.table import CommitTableRequest, CommitTableResponse, TableIdentifier
from pyiceberg.typedef import IcebergBaseModel
from requests import HTTPError

from tableformat.commit.multi_table_commit import TableRequest
from tableformat.metadata.newest import newest_of

_PATH: Final = "transactions/commit"
_ENDPOINT: Final = Endpoint(http_method=HttpMethod.POST, path=f"/v1/{{prefix}}/{_PATH}")
OFFERED: Final = str(_ENDPOINT)
"""The endpoint as servers list it."""
_ANSWERS: Final[dict[int, type[Exception]]] = {
    404: NoSuchTableError,
    409: CommitFailedException,
    500: CommitStateUnknownException,
    502: CommitStateUnknownException,
    503: CommitStateUnknownException,
    504: CommitStateUnknownException,
}


class _CommitTransactionRequest(IcebergBaseModel):
    table_changes: tuple[CommitTableRequest, ...] = Field(alias="table-changes")


def is_offered(catalog: RestCatalog) -> bool:
    """Whether the server lists the endpoint. A server that does not list it gets no request: an answer such as 404
    could mean a missing table."""
    return _ENDPOINT in catalog._supported_endpoints


def commit_tables(catalog: RestCatalog, requests: Sequence[TableRequest]) -> list[CommitTableResponse]:
    """LK-37: one request; its answer has no metadata, so the tables are loaded again."""
    changes = tuple(
        CommitTableRequest(
            identifier=TableIdentifier.model_validate(
                {"namespace": request.table.name()[:-1], "name": request.table.name()[-1]}
            ),
            requirements=request.requirements,
            updates=request.updates,
        )
        for request in requests
    )
    _post(catalog, _CommitTransactionRequest.model_validate({"table-changes": changes}))
    committed = (newest_of(request.table) for request in requests)
    return [
        CommitTableResponse.model_validate({"metadata": each.metadata, "metadata-location": each.metadata_location})
        for each in committed
    ]


def _post(catalog: RestCatalog, request: _CommitTransactionRequest) -> None:
    """Post the request like PyIceberg posts a commit: once more with a new token if the current one has expired."""
    try:
        _post_once(catalog, request)
    except (AuthorizationExpiredError, UnauthorizedError):
        catalog._refresh_token()
        _post_once(catalog, request)


def _post_once(catalog: RestCatalog, request: _CommitTransactionRequest) -> None:
    response = catalog._session.post(catalog.url(_PATH), data=request.model_dump_json().encode())
    try:
        response.raise_for_status()
    except HTTPError as error:
        _handle_non_200_response(error, _ANSWERS)
