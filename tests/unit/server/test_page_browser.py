"""The page in headless Chromium: desktop and phone, light and dark. Skipped where no Chromium is installed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.server.running import Server

TOKEN = "a secret"
LONG = "long_" * 40
HOSTILE = "<script>alert(1)</script>"
PAGES = (
    "/",
    "/table?name={}",
    *(f"/table/{tab}?name={{}}" for tab in ("schema", "history", "files", "engines", "jobs")),
)


def pictures() -> ModuleType:
    """`docs/pictures/chromium.py`, which also makes the screenshots of the guide."""
    path = Path(__file__).parents[3] / "docs" / "pictures" / "chromium.py"
    spec = importlib.util.spec_from_file_location("pictures_chromium", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


chromium = pictures()
pytestmark = pytest.mark.skipif(chromium.installed() is None, reason="no Chromium is installed")
SCREENS = {
    "desktop": chromium.Screen(width=1200, height=900),
    "desktop dark": chromium.Screen(width=1200, height=900, is_dark=True),
    "phone": chromium.Screen(width=390, height=844),
    "phone dark": chromium.Screen(width=390, height=844, is_dark=True),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    catalog = tf.open_catalog(str(tmp_path_factory.mktemp("lake")))
    catalog.create_namespace("db")
    schema = pa.schema(
        [("account", pa.int64()), (HOSTILE, pa.string()), *((f"{LONG}{n}", pa.int64()) for n in range(9))]
    )
    table = catalog.create_table("db.orders", schema, key=["account"], properties={HOSTILE: HOSTILE, LONG: LONG * 5})
    rows = {name: [HOSTILE if name == HOSTILE else 1] for name in schema.names}
    table.append(pa.table(rows, schema))
    table.delete_prefix({"account": 7})
    catalog.create_table(f"db.{LONG}", schema)
    with tf.serve(catalog, token=TOKEN, allow_jobs=True) as server:
        yield server


@pytest.fixture(scope="module")
def browser(server: Server) -> Iterator[Any]:
    """A browser that has logged in."""
    with chromium.Chromium(chromium.installed()) as browser:
        browser.open(server.url)
        browser.evaluate(f"document.getElementById('token').value = '{TOKEN}'")
        browser.press("form button")
        yield browser


@pytest.mark.parametrize("screen", SCREENS)
def test_pages_fit_the_screen_and_respect_the_content_policy(server: Server, browser: Any, screen: str) -> None:
    browser.show_on(SCREENS[screen])
    for name in ("db.orders", f"db.{LONG}"):
        for page in PAGES:
            browser.open(server.url + page.format(name))
            assert browser.problems == [], page
            assert browser.evaluate("document.querySelector('h1').textContent") not in ("Log in", "Refused"), page
            assert browser.evaluate("document.documentElement.scrollWidth") <= SCREENS[screen].width, page
            assert browser.evaluate("document.scripts.length") == 0, page


@pytest.mark.parametrize("screen", SCREENS)
def test_text_has_contrast_in_both_themes(server: Server, browser: Any, screen: str) -> None:
    browser.show_on(SCREENS[screen])
    browser.open(f"{server.url}/table?name=db.orders")
    colours = browser.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    text, back = (sum(map(int, colour[4:-1].split(","))) for colour in colours)
    assert (text > back) is SCREENS[screen].is_dark
    assert abs(text - back) > 400


def test_typed_query_shows_its_rows(server: Server, browser: Any) -> None:
    browser.show_on(SCREENS["phone"])
    browser.open(f"{server.url}/sql?name=db.orders")
    browser.press("button[value=page]")
    assert browser.problems == []
    assert HOSTILE in browser.evaluate("document.querySelector('table.rows').textContent")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    box = "document.querySelector('.scroll')"
    assert browser.evaluate(f"{box}.scrollWidth > {box}.clientWidth")


def test_job_button_starts_a_job_and_the_page_refreshes(server: Server, browser: Any) -> None:
    browser.show_on(SCREENS["desktop"])
    browser.open(f"{server.url}/table/jobs?name=db.orders")
    browser.press("button[value=yes]")
    for _ in range(20):
        if not browser.evaluate("document.querySelectorAll('meta[http-equiv=refresh]').length"):
            break
        browser.wait_for_load()
    assert "dry run" in browser.evaluate("document.querySelector('.job').textContent")
    assert browser.problems == []


def test_cross_site_form_is_rejected(server: Server, browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "attack.html"
    page.write_text(f'<form method="post" action="{server.url}/jobs/start?name=db.orders"><button>x</button></form>')
    browser.open(page.as_uri())
    browser.press("button")
    assert "Refused: the request comes from a page of another site." in browser.evaluate("document.body.textContent")
