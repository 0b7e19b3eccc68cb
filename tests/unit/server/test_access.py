"""Tokens, limits and errors of the server."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import OAuthError, UnauthorizedError
from served_lakes import orders, rows

import tableformat as tf
from tableformat.errors import InvalidArgumentError, StorageError
from tableformat.server.access import Access
from tableformat.server.options import ServeOptions
from tableformat.server.running import Server

SECRET = "correct horse battery staple"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    table = orders(tmp_path_factory.mktemp("guarded"))
    catalog = tf.open_catalog(table.iceberg.catalog.properties["warehouse"])
    options = ServeOptions(token=SECRET, max_body_bytes=1_000, body_timeout_seconds=1.0)
    with Server(catalog, options, "127.0.0.1", 0) as server:
        yield server


def ask(server: Server, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=10)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text) if text else None


def test_valid_token_gives_access(guarded: Server) -> None:
    client = load_catalog("served", type="rest", uri=guarded.url, token=SECRET)
    assert client.load_table("db.orders").scan().to_arrow().num_rows == 9


def test_client_secret_is_exchanged_for_a_token(guarded: Server) -> None:
    place = {"uri": guarded.url, "oauth2-server-uri": f"{guarded.url}/v1/oauth/tokens"}
    client = load_catalog("served", type="rest", credential=f"trino:{SECRET}", **place)
    assert client.list_tables("db") == [("db", "orders")]
    with pytest.raises(OAuthError):
        load_catalog("served", type="rest", credential="trino:wrong", **place)


@pytest.mark.parametrize("path", ["/v1/config", "/v1/namespaces", "/v1/namespaces/db/tables/orders"])
def test_every_route_requires_a_token(guarded: Server, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {SECRET}"}):
        status, body = ask(guarded, "GET", path, **headers)
        assert status == 401
        assert SECRET not in json.dumps(body)
    with pytest.raises(UnauthorizedError):
        load_catalog("served", type="rest", uri=guarded.url)


def test_issued_token_expires_and_cannot_be_forged() -> None:
    access = Access(SECRET)
    form = urlencode({"grant_type": "client_credentials", "client_secret": SECRET})
    token = access.issue(form.encode())["access_token"]
    assert access.accepts(token)
    assert Access(SECRET).accepts(token)
    assert not Access("another secret").accepts(token)
    expires, nonce, signature = token.split(".")
    assert not access.accepts(f"{int(expires) + 1}.{nonce}.{signature}")
    assert not access.accepts(f"1.{nonce}.{Access._signature(SECRET.encode(), '1', nonce)}")
    for odd in ("", ".", "..", "a.b.c", "é.é.é"):
        assert not access.accepts(odd)


def test_large_malformed_and_unknown_requests_are_refused(guarded: Server) -> None:
    bearer = {"Authorization": f"Bearer {SECRET}"}
    assert ask(guarded, "POST", "/v1/namespaces", b"x" * 2_000, **bearer)[0] == 413
    for body in (b"{", b"[]", b"{}", b'{"namespace": [""]}', b'{"namespace": []}', b"\xff\xfe"):
        status, answer = ask(guarded, "POST", "/v1/namespaces", body, **bearer)
        assert status == 400
        assert answer["error"]["code"] == 400
    assert ask(guarded, "GET", "/v1/no/such/route", **bearer)[0] == 404
    assert ask(guarded, "GET", "/v1/namespaces/none/tables/orders", **bearer)[0] == 404
    assert ask(guarded, "GET", "/v1/namespaces?pageSize=0", **bearer)[0] == 400
    bad_update = json.dumps({"requirements": [], "updates": [{"action": "explode"}]})
    assert ask(guarded, "POST", "/v1/namespaces/db/tables/orders", bad_update, **bearer)[0] == 400


def test_slow_client_is_disconnected(guarded: Server) -> None:
    host, _, port = urlsplit(guarded.url).netloc.partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(
            b"POST /v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
            + f"Authorization: Bearer {SECRET}\r\n\r\n".encode()
        )
        assert b" 408 " in connection.recv(1_000)


def test_disconnected_client_does_not_stop_the_server(guarded: Server) -> None:
    host, _, port = urlsplit(guarded.url).netloc.partition(":")
    for _ in range(20):
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(b"POST /v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    assert ask(guarded, "GET", "/v1/config", Authorization=f"Bearer {SECRET}")[0] == 200


def test_read_only_server_refuses_changes(tmp_path: Path) -> None:
    table = orders(tmp_path)
    with tf.serve(tf.open_catalog(str(tmp_path / "lake")), read_only=True) as server:
        client = load_catalog("served", type="rest", uri=server.url)
        table.delete_prefix({"customer": "B"})
        served = client.load_table("db.orders")
        assert served.scan().to_arrow().num_rows == 6
        # PyIceberg does not send what the server does not list.
        with pytest.raises(NotImplementedError):
            served.append(rows(("Z", 1, None)))
        assert ask(server, "DELETE", "/v1/namespaces/db/tables/orders")[0] == 403
    assert table.refresh().scan().count() == 6


def test_table_name_with_slash_is_one_path_segment(tmp_path: Path) -> None:
    orders(tmp_path)
    with tf.serve(tf.open_catalog(str(tmp_path / "lake"))) as server:
        status, body = ask(server, "GET", "/v1/namespaces/db/tables/orders%2Fof%20today")
    assert status == 404
    assert "orders/of today" in body["error"]["message"]


def test_unchanged_table_returns_not_modified(tmp_path: Path) -> None:
    table = orders(tmp_path)
    path = "/v1/namespaces/db/tables/orders"
    with tf.serve(tf.open_catalog(str(tmp_path / "lake")), freshness_seconds=0) as server:
        with closing(HTTPConnection(urlsplit(server.url).netloc)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            etag = answer.headers["ETag"]
        assert ask(server, "GET", path, **{"If-None-Match": etag})[0] == 304
        table.delete_prefix({"customer": "B"})
        assert ask(server, "GET", path, **{"If-None-Match": etag})[0] == 200


def test_invalid_server_options_are_rejected(tmp_path: Path) -> None:
    orders(tmp_path)
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    for options in ({"freshness_seconds": -1.0}, {"freshness_seconds": float("nan")}, {"token": " \n"}):
        with pytest.raises(InvalidArgumentError):
            tf.serve(catalog, **options)
    with tf.serve(catalog) as server, pytest.raises(StorageError):
        tf.serve(catalog, port=int(urlsplit(server.url).port or 0))
