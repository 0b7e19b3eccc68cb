"""The page of a server: what it displays, and what it refuses. Requests against a server on loopback."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from urllib.parse import quote, urlsplit

import pyarrow as pa
import pytest
import requests
from page_client import Browser, Document, check_harmless

import tableformat as tf
from tableformat.errors import InvalidArgumentError
from tableformat.server.options import ServeOptions
from tableformat.server.page.guard import is_local_name
from tableformat.server.running import Server

TABS = ("", "/schema", "/history", "/files", "/deletes", "/partitions", "/properties", "/plan", "/engines")
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>javascript:alert(3)&amp;{{7*7}}"
HOSTILE_NAME = HOSTILE.replace("/", "")
TOKEN = "a secret"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> tf.Catalog:
    """A plain table with pending deletes, and a table in which every name and value is hostile."""
    catalog = tf.open_catalog(str(tmp_path_factory.mktemp("lake")))
    catalog.create_namespace("db")
    schema = pa.schema([("account", pa.int64()), ("note", pa.string())])
    table = catalog.create_table("db.orders", schema, key=["account"])
    table.append(pa.table({"account": range(100), "note": ["=1+2", "-5", *["plain"] * 98]}, schema))
    table.delete_prefix({"account": 7})
    catalog.create_table("db.empty", schema)
    catalog.iceberg.create_namespace((HOSTILE_NAME,), {HOSTILE: HOSTILE})
    names = pa.schema([(HOSTILE, pa.string()), ("<i>p", pa.string()), ("n", pa.int64())])
    hostile = catalog.create_table(
        (HOSTILE_NAME, HOSTILE_NAME), names, partition_by=["<i>p"], properties={HOSTILE: HOSTILE}
    )
    hostile.append(pa.table({HOSTILE: [HOSTILE, "x"], "<i>p": ["<i>v</i>"] * 2, "n": [1, 2]}, names))
    hostile.delete("n = 2", mode="scan")
    hostile.refresh().create_tag("<b>tag</b>")
    return catalog


@pytest.fixture(scope="module")
def server(catalog: tf.Catalog) -> Iterator[Server]:
    with tf.serve(catalog) as server:
        yield server


@pytest.fixture(scope="module")
def guarded(catalog: tf.Catalog) -> Iterator[Server]:
    """A server with a token that runs jobs."""
    with tf.serve(catalog, token=TOKEN, allow_jobs=True) as server:
        yield server


def name_of(*parts: str) -> str:
    return quote(".".join(f'"{part.replace(chr(34), chr(34) * 2)}"' if "." in part else part for part in parts))


# -- pages -------------------------------------------------------------------------------------------------------------


def test_index_page_lists_namespaces_and_tables(server: Server) -> None:
    document = check_harmless(Browser(server).page("/").text)
    assert {"/table?name=db.orders", "/table?name=db.empty", "/namespace?name=db"} <= {
        attributes.get("href") for _, attributes in document.elements
    }
    assert "100" in document.text
    found = check_harmless(Browser(server).page("/?find=ORD").text).text
    assert "orders" in found
    assert "empty" not in found


def test_table_pages_show_table_details(server: Server, catalog: tf.Catalog) -> None:
    browser, table = Browser(server), catalog.load_table("db.orders")
    pages = {tab: check_harmless(browser.page(f"/table{tab}?name=db.orders").text) for tab in TABS}
    assert "read amplification" in pages[""].text
    assert "convert_deletes()" in pages[""].text  # the recommended job
    assert any(attributes.get("class") == "tf-layers" for _, attributes in pages[""].elements)
    assert "account" in pages["/schema"].text
    assert str(table.snapshot_id) in pages["/history"].text
    assert "+1 range delete" in pages["/history"].text
    assert ".parquet" in pages["/files"].text
    assert "account = 7" in pages["/deletes"].text
    assert "no partitions" in pages["/partitions"].text
    assert "tableformat.key" in pages["/properties"].text
    assert "scan, explained" in pages["/plan"].text


def test_empty_table_has_all_pages(server: Server) -> None:
    for tab in TABS:
        response = Browser(server).page(f"/table{tab}?name=db.empty")
        assert response.status_code == 200, tab
        check_harmless(response.text)


def test_plan_page_explains_condition_and_rejects_invalid_ones(server: Server) -> None:
    browser = Browser(server)
    planned = browser.page("/table/plan?name=db.orders&where=account+%3E+1000")
    assert "0 clean, 0 partial" in planned.text
    wrong = browser.page(f"/table/plan?name=db.orders&where={quote('nothing = <b>')}")
    assert wrong.status_code == 400
    check_harmless(wrong.text)
    deep = browser.page(f"/table/plan?name=db.orders&where={'(' * 3_000}account=1{')' * 3_000}")
    assert deep.status_code in (200, 400)


def test_engines_page_has_staged_conversion_and_no_token(guarded: Server) -> None:
    browser = Browser(guarded, token=TOKEN)
    before = browser.page("/table/engines?name=db.orders").text
    assert "is not converted yet" in before
    address = f"{guarded.url}/v1/namespaces/db/tables/orders"
    loaded = requests.get(address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60).json()["metadata"]
    after = check_harmless(browser.page("/table/engines?name=db.orders").text).text
    assert str(loaded["current-snapshot-id"]) in after
    assert "is not converted yet" not in after
    assert f'uri="{guarded.url}", token="<token>"' in after
    assert TOKEN not in after


def test_unknown_table_is_404_and_missing_name_is_400(server: Server) -> None:
    browser = Browser(server)
    statuses = [
        browser.page(path).status_code
        for path in ("/table?name=db.nothing", "/table", "/table?name=db.orders&branch=nothing", "/nothing")
    ]
    assert statuses[0] == 404
    assert statuses[1] == 400
    assert statuses[2] in (400, 404)
    assert statuses[3] == 404
    assert browser.page("/table/files?name=db.orders&page=-1").status_code == 400
    assert "nothing on this page" in browser.page("/table/files?name=db.orders&page=9").text


def test_hostile_names_and_values_are_escaped_on_every_page(server: Server) -> None:
    browser = Browser(server)
    table = name_of(HOSTILE_NAME, HOSTILE_NAME)
    paths = ["/", f"/namespace?name={name_of(HOSTILE_NAME)}", f"/?find={quote(HOSTILE)}", f"/sql?name={table}"]
    paths += [f"/table{tab}?name={table}&where={quote(HOSTILE)}" for tab in TABS]
    paths += [f"/table?name={quote(HOSTILE)}", f"/table?name=db.orders&branch={quote(HOSTILE)}"]
    for path in paths:
        response = browser.page(path)
        assert response.status_code < 500, path
        document = check_harmless(response.text)
        assert "{{7*7}}" in response.text or "where" in path, path
        assert "<script" not in response.text, path
        assert "alert" in document.text or "find" in path, path
    quoted = '"' + HOSTILE_NAME.replace('"', '""') + '"'
    rows = browser.submit("/sql", {"sql": f"FROM {quoted}.{quoted}"})
    assert rows.status_code == 200
    assert check_harmless(rows.text).text.count(HOSTILE) == 2  # the name of a column, and a value


def test_every_response_has_security_headers(server: Server) -> None:
    browser = Browser(server)
    for path in ("/", "/page.css", "/table?name=db.nothing", "/sql"):
        headers = browser.page(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"
    assert browser.page("/").headers["Cache-Control"] == "no-store"


def test_pages_load_only_their_own_style_sheet(server: Server) -> None:
    document = Document(Browser(server).page("/").text)
    loaded = [attributes["href"] for tag, attributes in document.elements if tag == "link"]
    assert loaded == ["/page.css", "data:,"]
    assert "url(" not in Browser(server).page("/page.css").text


# -- access ------------------------------------------------------------------------------------------------------------


def test_every_page_and_form_requires_login(guarded: Server) -> None:
    stranger = Browser(guarded)
    pages = ["/", "/namespace?name=db", "/sql", "/jobs", *(f"/table{tab}?name=db.orders" for tab in (*TABS, "/jobs"))]
    for path in pages:
        response = stranger.page(path)
        assert response.status_code == 401, path
        assert "orders" not in response.text.replace("name=db.orders", ""), path
    for path in ("/sql", "/jobs/start", "/jobs/cancel"):
        assert stranger.post(guarded.url + path, {"sql": "SELECT 1"}, timeout=30).status_code == 401, path
    stranger.cookies.set(
        f"tableformat-{urlsplit(guarded.url).port}", f"{int(time.time())}.{int(time.time())}.x.{'0' * 64}"
    )
    assert stranger.page("/").status_code == 401


def test_login_sets_an_http_only_same_site_cookie(guarded: Server) -> None:
    browser = Browser(guarded)
    assert browser.post(f"{guarded.url}/login", {"token": "wrong"}, timeout=30).status_code == 401
    answer = browser.post(
        f"{guarded.url}/login", {"token": TOKEN, "next": "//evil.example/"}, timeout=30, allow_redirects=False
    )
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/"
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/" in cookie
    assert TOKEN not in cookie
    assert browser.page("/table?name=db.orders").status_code == 200
    assert browser.submit("/logout", {}).status_code == 401  # the first page needs a login again


def test_session_cookie_expires(guarded: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = Browser(guarded, token=TOKEN)
    now = time.time()
    monkeypatch.setattr("tableformat.server.page.sessions.time.time", lambda: now + 3_599)
    assert browser.page("/").status_code == 200  # and the cookie gets a new time
    monkeypatch.setattr("tableformat.server.page.sessions.time.time", lambda: now + 7_000)
    assert browser.page("/").status_code == 200
    monkeypatch.setattr("tableformat.server.page.sessions.time.time", lambda: now + 13 * 3_600)
    assert browser.page("/").status_code == 401


def test_session_cookie_is_not_an_api_token(guarded: Server) -> None:
    browser = Browser(guarded, token=TOKEN)
    (cookie,) = browser.cookies.values()
    headers = {"Authorization": f"Bearer {cookie}"}
    assert requests.get(f"{guarded.url}/v1/config", headers=headers, timeout=30).status_code == 401


def test_form_requires_the_token_of_its_session(guarded: Server) -> None:
    browser, other = Browser(guarded, token=TOKEN), Browser(guarded, token=TOKEN)
    form = {"kind": "convert_deletes", "dry_run": "yes"}
    for token in ("", "x", other.form_token()):
        answer = browser.post(f"{guarded.url}/jobs/start?name=db.orders", {**form, "form_token": token}, timeout=30)
        assert answer.status_code == 403, token
    assert "No job was started" in browser.page("/jobs").text


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": None, "Origin": "http://evil.example"},
        {"Sec-Fetch-Site": None, "Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": None, "Origin": "null"},
    ],
)
@pytest.mark.parametrize("path", ["/sql", "/login", "/v1/namespaces"])
def test_cross_site_changes_are_rejected(server: Server, path: str, headers: Mapping[str, str | None]) -> None:
    browser = Browser(server)
    form = {"form_token": browser.form_token(), "sql": "SELECT 1"}
    assert browser.post(server.url + path, form, headers=headers, timeout=30).status_code == 403


@pytest.mark.parametrize("path", ["/", "/sql", "/v1/config", "/page.css"])
def test_loopback_server_without_token_accepts_only_local_hosts(server: Server, path: str) -> None:
    port = urlsplit(server.url).port
    for name, status in {
        f"evil.example:{port}": 403,
        f"127.0.0.1.evil.example:{port}": 403,
        "": 403,
        f"localhost:{port}": 200,
        f"[::1]:{port}": 200,
    }.items():
        answer = requests.get(server.url + path, headers={"Host": name}, timeout=30)
        assert answer.status_code == status, name


def test_server_with_token_accepts_every_host(guarded: Server) -> None:
    answer = requests.get(guarded.url, headers={"Host": "lake.example"}, timeout=30)
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("name", "is_local"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("lake.localhost", True),
        ("127.0.0.9", True),
        ("fe80::1%eth0", True),
        ("myhost", True),
        ("notlocalhost", False),
        ("localhost.evil.example", False),
        ("", False),
    ],
)
def test_local_host_names_are_recognized(name: str, is_local: bool) -> None:
    assert is_local_name(name, "myhost") is is_local


def test_jobs_require_a_token_and_a_writable_server() -> None:
    with pytest.raises(InvalidArgumentError, match="need a token"):
        ServeOptions(allow_jobs=True)
    with pytest.raises(InvalidArgumentError, match="read-only"):
        ServeOptions(allow_jobs=True, read_only=True, token=TOKEN)


def test_server_without_allow_jobs_rejects_jobs(server: Server) -> None:
    browser = Browser(server)
    assert browser.page("/jobs").status_code == 403
    assert browser.submit("/jobs/start?name=db.orders", {"kind": "compact"}).status_code == 403


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "multipart/form-data; boundary=x"])
def test_form_with_other_content_type_is_rejected(server: Server, content_type: str) -> None:
    answer = Browser(server).post(
        f"{server.url}/sql", data=b"sql=SELECT+1", headers={"Content-Type": content_type}, timeout=30
    )
    assert answer.status_code == 415
