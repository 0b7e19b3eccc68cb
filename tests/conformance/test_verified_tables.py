"""MT-70 to MT-75: `verify` finds no errors in the correct tables of the corpus and of other writers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from foreign_tables import EVERY_TABLE, ForeignTable, each_of
from long_forms import every

import tableformat as tf
from tableformat.maintenance.verification.findings import FindingKind
from tableformat.testing.table_builder import build

CORPUS = Path(__file__).parents[2] / "specs" / "corpus"
CASES: dict[str, dict[str, Any]] = {
    f"{path.stem}:{case['title']}": case
    for path in sorted(CORPUS.glob("*.json"))
    for case in json.loads(path.read_text())
}
READABLE = [name for name, case in CASES.items() if "read_error" not in case]
UNREADABLE = [name for name, case in CASES.items() if "read_error" in case]
JOBS = ["drop_dead_deletes", "merge_range_deletes", "convert_deletes", "compact", "rewrite_manifests"]

LOST = "snap-7342794868382145167-1-34f7dec7-90c5-4cd5-b158-5782b73fc010.avro"
"""A manifest list of a snapshot that is not current. It is missing from the files of a Flink table."""


@pytest.fixture
def catalog(tmp_path: Path) -> tf.Catalog:
    return tf.open_catalog(str(tmp_path / "lake"))


NAMED_TWICE = {
    "position-deletes:a data file that two commits added has its rows twice, and positions reach both",
    "position-deletes:positions between two commits of one data file reach the first",
}
"""Another writer added a data file twice (MT-64): the table is readable, but it is reported."""


@pytest.mark.parametrize("name", every(4, READABLE))
def test_corpus_tables_verify_without_findings(name: str, catalog: tf.Catalog) -> None:
    """Also after each maintenance job."""
    wrong = {FindingKind.DUPLICATE_FILE} if name in NAMED_TWICE else set()
    built = build(catalog, CASES[name])
    found = built.table.verify(deep=True)
    assert {each.kind for each in found.findings} == wrong, str(found)
    for job in JOBS:
        getattr(built.table.maintenance, job)()
        found = built.table.verify(deep=True)
        assert {each.kind for each in found.errors} == wrong, f"{job}: {found}"
        assert {each.kind for each in found.warnings} <= {FindingKind.DEAD_DELETE}, f"{job}: {found}"


@pytest.mark.parametrize("name", UNREADABLE)
def test_verify_reports_damage_that_makes_reads_fail(name: str, catalog: tf.Catalog) -> None:
    built = build(catalog, CASES[name])
    found = built.table.verify(deep=True)
    assert not found.is_clean
    assert all(each.next_step for each in found.findings)


@each_of(EVERY_TABLE)
def test_foreign_tables_verify_without_findings(foreign: ForeignTable) -> None:
    """Format versions 1 to 3; their Parquet files have checksums."""
    found = foreign.open().verify(deep=True)
    lost = [each for each in found.findings if each.file.endswith(LOST)]
    assert [each.kind for each in lost] == [FindingKind.MISSING_FILE] * (foreign.name == "mytable")
    assert [each for each in found.findings if each not in lost] == [], str(found)
    assert found.row_count > 0
    assert found.unchecksummed_file_count == 0
