"""The screenshots of the guide, by headless Chromium: `make screenshots` after pages look otherwise than before."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import tableformat as tf
from tableformat.display.report import table_report

HERE: Final = Path(__file__).parent
_PAGE: Final = (
    '<!doctype html><html><head><meta charset="utf-8"><style>body {{ font: 14px sans-serif; margin: 16px; }}</style>'
    "</head><body>{content}</body></html>"
)
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")


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


def main() -> None:
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        sys.exit(f"none of {', '.join(_BROWSERS)} is installed")
    with tempfile.TemporaryDirectory() as lake:
        table = offers(Path(lake))
        take(browser, table_report(table), "report.png", width=1000, height=1250)
        health = table.maintenance.health()._repr_html_()
        take(browser, _PAGE.format(content=health), "health.png", width=900, height=560)
        explanation = table.scan(where="account BETWEEN 100 AND 130").explain(analyze=True)
        take(browser, _PAGE.format(content=explanation._repr_html_()), "explain.png", width=1000, height=520)


if __name__ == "__main__":
    main()
