"""The screenshots of the guide, by headless Chromium: `make screenshots` after pages look otherwise than before."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from chromium import NAMES, Chromium, Screen, installed

import tableformat as tf
from tableformat.display.report import table_report

HERE: Final = Path(__file__).parent
_PAGE: Final = (
    '<!doctype html><html><head><meta charset="utf-8"><style>body {{ font: 14px sans-serif; margin: 16px; }}</style>'
    "</head><body>{content}</body></html>"
)
_SERVED: Final = (
    ("page-table.png", "/table?name=db.offers", Screen(width=1100, height=900), ""),
    ("page-phone.png", "/table?name=db.offers", Screen(width=390, height=844), ""),
    (
        "page-plan.png",
        "/table/plan?name=db.offers&where=account+BETWEEN+100+AND+130",
        Screen(width=1100, height=600),
        "",
    ),
    ("page-engines.png", "/table/engines?name=db.offers", Screen(width=1100, height=900, is_dark=True), ""),
    ("page-sql.png", "/sql?name=db.offers", Screen(width=1100, height=800, is_dark=True), "button[value=page]"),
)
"""Pages of a server: the picture, the address, the screen, and the button to press."""


def offers(directory: Path) -> tf.Table:
    """A first load, then messages that replace the offers of some accounts each, and one of an account that left."""
    catalog = tf.open_catalog(str(directory))
    catalog.create_namespace("db")
    schema = pa.schema([("account", pa.int64()), ("offer", pa.int64()), ("price", pa.float64())])
    table = catalog.create_table("db.offers", schema, key=["account", "offer"])

    def message(accounts: range, count: int) -> Any:
        rows = [(account, offer) for account in accounts for offer in range(count)]
        columns = {"account": [row[0] for row in rows], "offer": [row[1] for row in rows], "price": [9.5] * len(rows)}
        return pa.table(columns, schema)

    table.append(message(range(0, 400), 20))
    for begin in (120, 300, 40, 220, 120, 360):
        table.replace(message(range(begin, begin + 40), 15), prefix=["account"])
    table.delete_range(on=["account"], lower=[180], upper=[215])
    return table


def take(browser: str, content: str, name: str, *, width: int, height: int) -> None:
    """A picture of the page, at `HERE / name`."""
    with tempfile.TemporaryDirectory() as directory:
        page = Path(directory) / "page.html"
        page.write_text(content)
        command = [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={directory}/profile",
            f"--window-size={width},{height}",
            f"--screenshot={HERE / name}",
            page.as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


def take_served(browser: str, directory: Path) -> None:
    """Pictures of the pages of a server for the lake."""
    with tf.serve(tf.open_catalog(str(directory))) as server, Chromium(browser) as chromium:
        for name, path, screen, button in _SERVED:
            chromium.show_on(screen)
            chromium.open(server.url + path)
            if button:
                chromium.press(button)
            (HERE / name).write_bytes(chromium.screenshot())


def main() -> None:
    browser = installed()
    if browser is None:
        sys.exit(f"none of {', '.join(NAMES)} is installed")
    with tempfile.TemporaryDirectory() as lake:
        table = offers(Path(lake))
        take(browser, table_report(table), "report.png", width=1000, height=1250)
        health = table.maintenance.health()._repr_html_()
        take(browser, _PAGE.format(content=health), "health.png", width=900, height=560)
        explanation = table.scan(where="account BETWEEN 100 AND 130").explain(analyze=True)
        take(browser, _PAGE.format(content=explanation._repr_html_()), "explain.png", width=1000, height=520)
        take_served(browser, Path(lake))


if __name__ == "__main__":
    main()
