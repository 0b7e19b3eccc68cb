"""Interactive sessions: Arrow tables as tables, errors without internal frames, a bar for jobs."""

from __future__ import annotations

import io
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.markup import session_bar


class Printer:
    def __init__(self) -> None:
        self.printed = ""

    def text(self, text: str) -> None:
        self.printed += text


class Notebook:
    """The parts of a running IPython that the library calls."""

    def __init__(self) -> None:
        self.formatters = {kind: SimpleNamespace(type_printers={}) for kind in ("text/html", "text/plain")}
        self.display_formatter = SimpleNamespace(formatters=self.formatters)
        self.kernel = object()
        self.drawn: list[str] = []

    def html_of(self, value: Any) -> str | None:
        printer = self.formatters["text/html"].type_printers.get(type(value))
        return None if printer is None else printer(value)

    def text_of(self, value: Any) -> str:
        printer = Printer()
        self.formatters["text/plain"].type_printers[type(value)](value, printer, False)
        return printer.printed

    def display(self, shown: str, display_id: bool) -> Notebook:
        assert display_id
        self.update(shown)
        return self

    def update(self, shown: str) -> None:
        self.drawn.append(shown)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    running = Notebook()
    module = ModuleType("IPython")
    module.get_ipython = lambda: running  # type: ignore[attr-defined]
    module.display = SimpleNamespace(display=running.display, HTML=str)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setattr(session_bar, "_FIRST_AFTER_SECONDS", 0)
    monkeypatch.setattr(session_bar, "_NEXT_AFTER_SECONDS", 0)
    return running


@pytest.fixture
def orders(catalog: tf.Catalog) -> tf.Table:
    catalog.write("shop.orders", pa.table({"customer": ["ann", "bob"], "order": [1, 2]}), key=["customer", "order"])
    return catalog.load_table("shop.orders")


def test_a_notebook_displays_history_schema_and_metadata_tables(notebook: Notebook, orders: tf.Table) -> None:
    assert notebook.html_of(pa.table({"customer": ["ann"]})) is None
    history = orders.history()
    moment = history["made_current_at"][0].as_py()
    assert f"{moment:%Y-%m-%d %H:%M:%S} UTC" in (notebook.html_of(history) or "")
    assert str(orders.snapshot_id) in notebook.text_of(history)
    assert notebook.text_of(orders.schema).splitlines()[1:] == [
        "column    type",
        "customer  string  required",
        "order     int64   required",
    ]
    files = notebook.text_of(orders.inspect.files())
    assert "customer: ann to bob, order: 1 to 2" in files
    assert files.splitlines()[-1].startswith("Columns that are not displayed: column_sizes")
    assert "bob" in (notebook.html_of(orders.head()) or "")


def test_other_arrow_tables_keep_their_display(notebook: Notebook, orders: tf.Table) -> None:
    notebook.formatters["text/html"].type_printers[pa.Table] = lambda table: f"{table.num_rows} of others"
    assert "2 rows" in (notebook.html_of(orders.head()) or "")
    other = pa.table({"customer": ["ann"]})
    assert notebook.html_of(other) == "1 of others"
    assert notebook.text_of(other) == repr(other)


def test_an_error_is_displayed_without_frames_of_the_library(orders: tf.Table) -> None:
    with pytest.raises(tf.errors.UnknownColumnError) as caught:
        orders.scan(where="custome = 'ann'")
    lines = caught.value._render_traceback_()
    assert lines[-2].strip() == "orders.scan(where=\"custome = 'ann'\")"
    assert lines[-1].startswith("UnknownColumnError: unknown column 'custome' in the filter.")
    assert not any("tableformat/scan" in line for line in lines)


def test_jobs_draw_a_bar_in_notebooks(notebook: Notebook, orders: tf.Table) -> None:
    orders.upsert({"customer": "ann", "order": 1})
    orders.maintenance.compact(rewrite_all=True)
    assert "3 of 3 rows" in notebook.drawn[-2]
    assert notebook.drawn[-1] == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_jobs_draw_a_bar_at_prompts_and_remove_it(monkeypatch: pytest.MonkeyPatch, orders: tf.Table) -> None:
    monkeypatch.setattr(session_bar, "_FIRST_AFTER_SECONDS", 0)
    monkeypatch.setattr(sys, "stderr", script := Terminal())
    orders.verify()
    assert script.getvalue() == ""
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    orders.verify()
    assert " of " in script.getvalue()
    assert script.getvalue().endswith("\r\x1b[K")
