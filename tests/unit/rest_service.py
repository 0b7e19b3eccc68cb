"""A catalog server over a lake. It supports the part of Iceberg's REST protocol that commits to several tables need."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, UnauthorizedError
from pyiceberg.table import CommitTableRequest, Table

from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.commit.multi_table_commit import TableRequest

TRANSACTIONS = "POST /v1/{prefix}/transactions/commit"
ENDPOINTS = [
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    TRANSACTIONS,
]
Commit = Callable[[list[TableRequest]], None]


class RestService:
    """The server. `answer` may be replaced by another way to commit several tables."""

    def __init__(self, lake: EmbeddedCatalog) -> None:
        self.lake = lake
        self.endpoints = list(ENDPOINTS)
        self.requests: list[Any] = []
        """The bodies of commits to several tables."""
        self.answer: Commit = self.apply
        self.after_load: list[Callable[[], object]] = []
        """Called once each, after tables were loaded."""

    def apply(self, requests: list[TableRequest]) -> None:
        """All of them or none."""
        self.lake.commit_tables(requests)

    def get(self, path: list[str]) -> Any:
        if path == ["config"]:
            return {"defaults": {}, "overrides": {}, "endpoints": self.endpoints}
        found = json.loads(_response(self._table(path)))
        if self.after_load:
            self.after_load.pop(0)()
        return found

    def post(self, path: list[str], body: Any) -> Any:
        if path == ["transactions", "commit"]:
            self.requests.append(body)
            self.answer([self._request(each) for each in body["table-changes"]])
            return None
        request = self._request(body)
        self.lake.commit_table(request.table, request.requirements, request.updates)
        return json.loads(_response(self._table(path)))

    def _table(self, path: list[str]) -> Table:
        assert (path[0], path[2]) == ("namespaces", "tables"), path
        return self.lake.load_table((*unquote(path[1]).split("\x1f"), unquote(path[3])))

    def _request(self, body: Any) -> TableRequest:
        change = CommitTableRequest.model_validate(body)
        table = self.lake.load_table((*change.identifier.namespace.root, change.identifier.name))
        return TableRequest(table, change.requirements, change.updates)


def _response(table: Table) -> str:
    return f'{{"metadata-location": "{table.metadata_location}", "metadata": {table.metadata.model_dump_json()}}}'


@contextmanager
def serving(service: RestService) -> Iterator[Callable[[], RestCatalog]]:
    """Makes clients of the server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(service.get)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(lambda path: service.post(path, body))

        def log_message(self, *_arguments: Any) -> None:
            """Quiet."""

        def _answer(self, of: Callable[[list[str]], Any]) -> None:
            path = self.path.partition("?")[0].removeprefix("/v1/").split("/")
            try:
                code, found = 200, of(path)
            except CommitFailedException as error:
                code, found = 409, _error(error, 409)
            except UnauthorizedError as error:
                code, found = 401, _error(error, 401)
            except NoSuchTableError as error:
                code, found = 404, _error(error, 404)
            except Exception as error:  # noqa: BLE001 - as a server does
                code, found = 500, _error(error, 500)
            data = b"" if found is None else json.dumps(found).encode()
            self.send_response(204 if found is None else code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield lambda: RestCatalog("service", uri=f"http://127.0.0.1:{server.server_address[1]}")
        finally:
            server.shutdown()
            thread.join()


def _error(error: Exception, code: int) -> dict[str, Any]:
    return {"error": {"message": str(error), "type": type(error).__name__, "code": code}}
