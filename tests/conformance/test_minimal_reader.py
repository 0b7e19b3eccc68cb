"""`specs/minimal-reader.md` is enough: a reader written from that page alone agrees with the corpus."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import minimal_reader
import pytest
from minimal_reader import UnreadableError, read_table
from pyiceberg.schema import Schema

import tableformat as tf
from tableformat.metadata.content_file import DeleteFile
from tableformat.testing.json_values import rows_from_json
from tableformat.testing.key_order import fingerprint
from tableformat.testing.table_builder import BuiltTable, build, live_files

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "specs" / "minimal-reader.md"
READER = Path(minimal_reader.__file__)
CASES: dict[str, dict[str, Any]] = {
    f"{path.stem}:{case['title']}": case
    for path in sorted((ROOT / "specs" / "corpus").glob("*.json"))
    for case in json.loads(path.read_text())
}
READABLE = [name for name, case in CASES.items() if "read_error" not in case]
UNREADABLE = [name for name, case in CASES.items() if "read_error" in case]


@pytest.fixture
def catalog(tmp_path: Path) -> tf.Catalog:
    return tf.open_catalog(str(tmp_path / "lake"))


def expected(rows: Sequence[Any], schema: Schema, columns: Sequence[str]) -> Counter[tuple[Any, ...]]:
    return fingerprint(rows_from_json(rows, schema, columns), [field.name for field in schema.fields])


def check_states(built: BuiltTable, case: Mapping[str, Any]) -> None:
    """The rows of main, of other branches and of earlier snapshots."""
    metadata = built.table.metadata
    schema, location = metadata.schema(), built.table.iceberg.metadata_location
    names = [field.name for field in schema.fields]
    branches = {"main": case["rows"], **case.get("branches", {})}
    for branch, rows in branches.items():
        found = fingerprint(read_table(location, branch=branch), names)
        assert found == expected(rows, schema, case.get("columns") or names), branch
    for label, rows in case.get("snapshots", {}).items():
        snapshot_id = built.snapshot_ids[label]
        snapshot = metadata.snapshot_by_id(snapshot_id)
        assert snapshot is not None
        then = metadata.schema_by_id(snapshot.schema_id)
        then_names = [field.name for field in then.fields]
        wanted = fingerprint(rows_from_json(rows, schema, then_names), then_names)
        assert fingerprint(read_table(location, snapshot_id=snapshot_id), then_names) == wanted, label


@pytest.mark.parametrize("name", READABLE)
def test_minimal_reader_reads_the_rows_of_the_corpus(name: str, catalog: tf.Catalog) -> None:
    """DA-1 to DA-7, DA-9, DA-10, RD-1 to RD-5, RD-7 to RD-9, FM-16: this reader uses no bounds, markers or carried
    spans."""
    built = build(catalog, CASES[name])
    check_states(built, CASES[name])


@pytest.mark.parametrize("name", UNREADABLE)
def test_minimal_reader_rejects_unreadable_deletes(name: str, catalog: tf.Catalog) -> None:
    """DA-8: rows are never returned without applying their deletes."""
    case = CASES[name]
    built = build(catalog, case)
    with pytest.raises(UnreadableError, match=re.escape(case["read_error"]["names"])):
        read_table(built.table.iceberg.metadata_location)


def test_minimal_reader_agrees_after_conversion_and_compaction(catalog: tf.Catalog) -> None:
    """MT-13, MT-43: another implementation reads the same rows before and after."""
    built = build(
        catalog,
        {
            "schema": {"id": "string", "n": "long"},
            "key": ["id", "n"],
            "steps": [
                {"append": [["a", 1], ["a", 2], ["b", 1], ["c", 1]]},
                {"replace": [["a", 3]], "prefix": ["id"]},
                {"delete_rows": [{"id": "b", "n": 1}]},
                {"append": [["b", 2]]},
            ],
        },
    )
    wanted = Counter({("a", 3): 1, ("b", 2): 1, ("c", 1): 1})
    jobs = (
        lambda maintenance: maintenance.convert_deletes(),
        lambda maintenance: maintenance.compact(rewrite_all=True),
    )
    for job in (lambda _maintenance: None, *jobs):
        job(built.table.maintenance)
        rows = read_table(built.table.iceberg.metadata_location)
        assert Counter((row["id"], row["n"]) for row in rows) == wanted
    assert not [file for file in live_files(built.table) if isinstance(file, DeleteFile)]


def test_minimal_reader_does_not_import_the_library() -> None:
    """It was written only from the page and the Iceberg specification."""
    imported = {
        name
        for node in ast.walk(ast.parse(READER.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert not [name for name in imported if str(name).startswith(("tableformat", "pyiceberg", "spark_ext"))]


def test_minimal_reader_implements_the_ten_documented_steps() -> None:
    steps = [int(number) for number in re.findall(r"(?m)^## (\d+)\. ", PAGE.read_text())]
    assert steps == list(range(1, 11))
    sections = re.findall(r"(?m)^# -- ([\d and]+)\. ", READER.read_text())
    assert sorted(int(number) for section in sections for number in section.split(" and ")) == steps
