"""The examples in docstrings run and print the stated output; public functions and the more complicated private ones
have one."""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.engines import duckdb
from tableformat.maintenance.maintenance import Maintenance
from tableformat.operations.ranges.handle import TableRangePartitions
from tableformat.scan.arrow_rows import ArrowRows

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "tableformat").rglob("*.py"))
PARSER = doctest.DocTestParser()
FLAGS = doctest.NORMALIZE_WHITESPACE
USES_LAKE = re.compile(r"\b(catalog|table|sales)\b")


def docstrings(path: Path) -> Iterator[tuple[str, str, int]]:
    """Dotted name, docstring and line of the module, its classes and functions."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")

    def inside(node: ast.Module | ast.ClassDef, name: str) -> Iterator[tuple[str, str, int]]:
        yield name, ast.get_docstring(node) or "", getattr(node, "lineno", 1)
        for child in node.body:
            if isinstance(child, ast.ClassDef):
                yield from inside(child, f"{name}.{child.name}")
            elif isinstance(child, ast.FunctionDef):
                yield f"{name}.{child.name}", ast.get_docstring(child) or "", child.lineno

    yield from inside(ast.parse(path.read_text()), module)


EXAMPLES = {
    name: (path, text, line)
    for path in MODULES
    if ">>>" in path.read_text()
    for name, text, line in docstrings(path)
    if ">>>" in text
}
SET_UP = "tableformat.table.Table"
"""The docstring whose example creates the lake for all others."""
GO_ON = ("tableformat.operations.ranges.handle.TableRangePartitions",)
"""Classes whose own example runs before the examples of their methods."""


def definitions(path: Path) -> dict[str, Any]:
    """The names that a module defines, including private ones; an example has its own imports for other names."""
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}


def lake() -> dict[str, Any]:
    """`pa`, `tf`, `catalog` and `table` as the docstring of `Table` makes them, in the current directory."""
    names: dict[str, Any] = {}
    for example in PARSER.get_examples(EXAMPLES[SET_UP][1]):
        exec(compile(example.source, SET_UP, "single"), names)
    return names


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_print_the_documented_output(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path, text, line = EXAMPLES[name]
    names = {"np": np, "pa": pa, **definitions(path)}
    if name != SET_UP and USES_LAKE.search(text):
        with contextlib.redirect_stdout(io.StringIO()):
            names |= lake()
            for example in PARSER.get_examples(
                "".join(EXAMPLES[each][1] for each in GO_ON if name.startswith(each + "."))
            ):
                exec(compile(example.source, name, "single"), names)
    report: list[str] = []
    test = PARSER.get_doctest(text, names, name, str(path), line)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(report)


CLEVER = [
    "tableformat.deletes.matching.boundary_trie.BoundaryTrie._build_level",
    "tableformat.deletes.spans.cuts.CutArray",
    "tableformat.deletes.spans.skyline.newest_per_interval",
    "tableformat.deletes.spans.spans.SpanArray",
    "tableformat.keys.encoding.encode_column",
    "tableformat.keys.encoding.encode_rows",
    "tableformat.keys.encoding.encode_values",
    "tableformat.maintenance.conversion.conversion_steps.conversion_key",
    "tableformat.merge_on_read.span_positions.positions_in_file",
]
FUNCTIONS = [tf.open_catalog, tf.read_metadata, duckdb.attach, duckdb.refresh, duckdb.detach]
CLASSES = [tf.Table, TableRangePartitions, tf.Catalog, tf.Scan, ArrowRows, tf.Changes, tf.StagedWrite, Maintenance]


def full_name(each: Any) -> str:
    return f"{each.__module__}.{each.__qualname__}"


def test_complex_functions_have_examples() -> None:
    assert [name for name in CLEVER if name not in EXAMPLES] == []


def test_every_public_method_has_an_example() -> None:
    """Also inherited methods, if the class that defines them is ours."""
    methods = {
        f"{full_name(home)}.{name}"
        for each in CLASSES
        for home in each.__mro__
        if home.__module__.startswith("tableformat.")
        for name, value in vars(home).items()
        if callable(value) and not name.startswith("_")
    }
    assert len(methods) > 70
    assert [name for name in [*methods, *map(full_name, [*CLASSES, *FUNCTIONS])] if name not in EXAMPLES] == []


def test_transaction_methods_refer_to_table_methods() -> None:
    """Each docstring refers to the table's method; the class has an example with several operations in one snapshot."""
    assert full_name(tf.Transaction) in EXAMPLES
    verbs = [name for name, value in vars(tf.Transaction).items() if callable(value) and not name.startswith("_")]
    verbs.remove("commit")
    assert [name for name in verbs if full_name(getattr(tf.Table, name)) not in EXAMPLES] == []
    assert [name for name in verbs if getattr(tf.Transaction, name).__doc__ != f"See `Table.{name}`."] == []
