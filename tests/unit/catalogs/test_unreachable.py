"""A catalog service or database that becomes unavailable after the catalog was opened."""

from __future__ import annotations

import json
import pickle
import sqlite3
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
import requests
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchNamespaceError
from sqlalchemy import event

import tableformat as tf
from spark_ext.service.wire.errors import describe_error
from tableformat.errors import AlreadyExistsError, CommitStateUnknownError, StorageError


class _Service(BaseHTTPRequestHandler):
    """Answers for the configuration; knows no namespace."""

    def do_GET(self) -> None:
        is_known = self.path.startswith("/v1/config")
        body: dict[str, object] = {"defaults": {}, "overrides": {}}
        if not is_known:
            body = {"error": {"message": "none", "type": "NoSuchNamespaceException", "code": 404}}
        answer = json.dumps(body).encode()
        self.send_response(200 if is_known else 404)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_arguments: object) -> None:
        """Keep quiet."""


@pytest.fixture
def away() -> Iterator[tf.Catalog]:
    """A catalog whose service answered once and then went away."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Service)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    catalog = tf.open_catalog("prod", type="rest", uri=f"http://127.0.0.1:{server.server_port}/")
    try:
        with pytest.raises(NoSuchNamespaceError):  # An answer is no outage.
            catalog.iceberg.list_namespaces("db")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    yield catalog
    catalog.close()


CALLS: dict[str, Callable[[tf.Catalog], object]] = {
    "list_namespaces": lambda catalog: catalog.list_namespaces(),
    "create_namespace": lambda catalog: catalog.create_namespace("db"),
    "table_exists": lambda catalog: catalog.table_exists("db.t"),
    "load_table": lambda catalog: catalog.load_table("db.t"),
    "create_table": lambda catalog: catalog.create_table("db.t", pa.schema([("id", pa.int64())])),
    "drop_table": lambda catalog: catalog.drop_table("db.t"),
}


def test_unreachable_catalog_raises_storage_error_with_its_name(
    away: tf.Catalog, capfd: pytest.CaptureFixture[str]
) -> None:
    """LK-11: one StorageError, which Spark's process passes on without a traceback."""
    for name, call in CALLS.items():
        with pytest.raises(StorageError, match=r"catalog 'prod' cannot be reached: .*refused.* try again") as caught:
            call(away)
        assert describe_error(caught.value)["condition"] == "TABLEFORMAT_STORAGE", name
    with pytest.raises(StorageError, match="cannot be reached"):
        pickle.loads(pickle.dumps(away.iceberg)).list_namespaces()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("kind", ["lake", "sql"])
def test_unavailable_database_raises_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """LK-11: errors that a database returns keep their class; a refused connection is an outage."""
    if kind == "lake":
        catalog = tf.open_catalog(str(tmp_path / "lake"))
    else:
        options = {"uri": f"sqlite:///{tmp_path}/sql.db", "warehouse": str(tmp_path / "warehouse")}
        catalog = tf.open_catalog("prod", type="sql", **options)
    catalog.create_namespace("db")
    rows = pa.table({"id": [1]})
    table = catalog.create_table("db.t", rows.schema)
    with pytest.raises(AlreadyExistsError):
        catalog.create_namespace("db")
    engine = cast(SqlCatalog, catalog.iceberg).engine

    def refuse(*_arguments: object) -> None:
        raise sqlite3.OperationalError("connection refused")

    engine.dispose()
    event.listen(engine, "do_connect", refuse)
    for name, call in CALLS.items():
        with pytest.raises(StorageError, match=r"catalog '.*' cannot be reached: connection refused\. Check") as caught:
            call(catalog)
        assert describe_error(caught.value)["condition"] == "TABLEFORMAT_STORAGE", name
    with pytest.raises(StorageError, match="cannot be reached"):
        table.append(rows)
    event.remove(engine, "do_connect", refuse)
    assert table.refresh().scan().count() == 0


def test_table_creation_without_response_is_unknown(
    away: tf.Catalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """CP-13: the table may exist, and the error says how to find out."""

    class Creation:
        def commit_transaction(self) -> None:
            raise requests.ConnectionError("connection reset by peer")

    monkeypatch.setattr(away, "stage_table", lambda *_arguments, **_options: Creation())
    with pytest.raises(CommitStateUnknownError):
        away.create_table("db.t", pa.schema([("id", pa.int64())]))
