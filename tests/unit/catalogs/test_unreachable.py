"""A catalog service that goes away after it was opened."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.table import Table as IcebergTable

import tableformat as tf
from spark_ext.service.wire.errors import describe_error
from tableformat.errors import StorageError


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
    """A catalog whose service answered once, and is gone."""
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


def test_every_call_names_the_catalog(away: tf.Catalog, capfd: pytest.CaptureFixture[str]) -> None:
    """LK-11: one StorageError, which Spark's process passes on without a traceback."""
    for name, call in CALLS.items():
        with pytest.raises(StorageError, match=r"catalog 'prod' cannot be reached: .*refused.* try again") as caught:
            call(away)
        assert describe_error(caught.value)["condition"] == "TABLEFORMAT_STORAGE", name
    with pytest.raises(StorageError, match="cannot be reached"):
        pickle.loads(pickle.dumps(away.iceberg)).list_namespaces()
    assert "Traceback" not in capfd.readouterr().err


def test_table_that_was_loaded_before_names_the_catalog(away: tf.Catalog, tmp_path: Path) -> None:
    """LK-11: a write and a refresh ask the service; a scan does not."""
    with tf.open_catalog(str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        kept = lake.create_table("db.t", pa.schema([("id", pa.int64())])).iceberg
        table = tf.Table(IcebergTable(kept.name(), kept.metadata, kept.metadata_location, kept.io, away.iceberg))
        assert table.scan().count() == 0
        for call in (table.refresh, lambda: table.append(pa.table({"id": [1]}))):
            with pytest.raises(StorageError, match="catalog 'prod' cannot be reached"):
                call()
