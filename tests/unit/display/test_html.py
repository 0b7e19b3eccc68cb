"""The HTML in notebooks, and the report of a table: no script, no external resource, any names, and no row is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.display.report import table_report
from tableformat.properties import KEY_FIELD_IDS
from tableformat.testing.table_files import live_data_files

NAME = "db.<script>alert(1)</script>&\"'"
COLUMN = "<b>k"


@pytest.fixture
def table(catalog: tf.Catalog) -> tf.Table:
    columns = pa.schema([(COLUMN, pa.string()), ("n", pa.int64())])
    table = catalog.create_table(NAME, columns, key=[COLUMN, "n"], properties={"owner": "<i>me"})
    for number in range(3):
        table.append(pa.table({COLUMN: ["<td>", "</table>"], "n": [number, number]}))
    table.delete_prefix({COLUMN: "<td>"})
    table.delete_rows(pa.table({"n": [1]}))
    return table


def check(page: str) -> str:
    """The text of a page that has no script and asks for nothing."""
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=|@import|url\((?!#)", page)
    assert "<i>me" not in page
    assert COLUMN not in page
    return page


def test_html_shows_all_parts_of_a_table(catalog: tf.Catalog, table: tf.Table) -> None:
    shown: dict[str, Any] = {
        "&lt;script&gt;alert(1)": catalog,
        "key 2": table,
        "&lt;b&gt;k": table.scan(where="n > 1", limit=5),
        "data files to read": table.scan().plan(),
        "partial": table.scan().explain(),
        "converted and compacted": table.maintenance.health(),
        "dry run: nothing was changed": table.maintenance.convert_deletes(dry_run=True),
        "_change_type": table.changes(),
        "snapshot id": table.append(pa.table({COLUMN: ["z"], "n": [9]})),
        "jobs": table.maintenance.run(dry_run=True),
        "verify": table.verify(),
        "bytes to rewrite": table.maintenance.plan_compaction(rewrite_all=True),
    }
    for text, each in shown.items():
        assert text in check(each._repr_html_())


def test_html_display_reads_no_rows(table: tf.Table) -> None:
    for file in live_data_files(table):
        Path(file.file_path.removeprefix("file://")).unlink(missing_ok=True)
    again = table.refresh()
    for each in (again, again.scan(), again.changes(), again.layers()):
        assert each._repr_html_()


def test_html_of_empty_table_and_of_table_with_invalid_key(catalog: tf.Catalog, table: tf.Table) -> None:
    empty = catalog.create_table("db.empty", pa.schema([("n", pa.int64())]))
    assert "no snapshot yet" in empty._repr_html_()
    assert "It has no files." in table_report(empty)
    assert "Nothing to do." in empty.maintenance.health()._repr_html_()
    with table.iceberg.transaction() as transaction:
        transaction.set_properties({KEY_FIELD_IDS: "987654"})
    assert "987654" in table.refresh()._repr_html_()


def test_table_report_is_one_complete_page(table: tf.Table) -> None:
    page = check(table_report(table))
    for text in ("read amplification", 'class="tf-layers"', "key 1", "range delete", "&lt;i&gt;me", "main"):
        assert text in page
    assert page.startswith("<!doctype html>")
    assert "prefers-color-scheme:dark" in page
    assert page.count("<html") == 1
