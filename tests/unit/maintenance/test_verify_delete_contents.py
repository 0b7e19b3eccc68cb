"""Verification of the delete files of other writers, and of findings that are reported in addition to another one
(MT-75)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from damaged_tables import alter_files, kinds, rewrite_rows, the_finding
from maintenance_tables import keyed_table, rows
from test_verify_files import TestSpans as SpanFiles

import tableformat as tf
from tableformat.maintenance.verification.findings import FindingKind
from tableformat.metadata.content_file import DeleteFile
from tableformat.testing.table_files import live_delete_files


def two_files(directory: Path, version: str = "2") -> tf.Table:
    table = keyed_table(directory, properties={"format-version": version})
    for name in "ab":
        table.append(rows(name, range(4)))
    return table


def test_row_count_excludes_equality_delete_rows(tmp_path: Path) -> None:
    """MT-70: `row_count` is of data files."""
    table = two_files(tmp_path)
    table.delete_rows(rows("a", [1, 2]).select(["id1", "id2"]))
    found = table.verify(deep=True)
    assert (found.findings, found.row_count) == ((), 8)


def test_position_deletes_without_field_ids_are_read_by_name(tmp_path: Path) -> None:
    """DA-10"""
    table = two_files(tmp_path)
    table.delete("id1 = 'a' and id2 = 1", mode="scan")
    (delete,) = live_delete_files(table)
    plain = pa.schema([("file_path", pa.string()), ("pos", pa.int64())])
    rewrite_rows(table, delete, lambda found: pa.table([found["file_path"], found["pos"]], schema=plain))
    assert table.verify(deep=True).findings == ()
    assert table.scan().count() == 7


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(("a", 0), ("b", 2)), (("a", 1), ("b", 3)), (("a", 1), ("b", 2))],
    ids=["another lower cut", "another upper cut", "the same"],
)
def test_inline_spans_are_compared_at_both_bounds(
    tmp_path: Path, lower: tuple[str, int], upper: tuple[str, int]
) -> None:
    """RD-13: a scan uses the spans in the entry."""
    made = SpanFiles()
    table = made.made(tmp_path)
    made.write(table, lower, upper)
    is_same = (lower, upper) == (("a", 1), ("b", 2))
    assert ("wrong-spans" in kinds(table.verify(deep=True))) is not is_same


@pytest.mark.parametrize("version", ["2", "3"])
def test_position_of_the_last_row_is_valid(tmp_path: Path, version: str) -> None:
    """MT-75: positions are counted from 0."""
    table = two_files(tmp_path, version)
    table.delete("id2 = 3", mode="scan")
    assert table.verify(deep=True).findings == ()


def test_position_count_above_the_entry_is_a_finding(tmp_path: Path) -> None:
    table = two_files(tmp_path)
    table.delete("id1 = 'a' and id2 in (1, 2)", mode="scan")
    alter_files(table, lambda file: replace(file, record_count=1) if isinstance(file, DeleteFile) else file)
    finding = the_finding(table.verify(deep=True), FindingKind.WRONG_COUNT)
    assert "entry states 1 rows, but its footer states 2" in finding.what


@pytest.mark.parametrize(
    ("upper", "stated", "told"),
    [
        (("b", 2), {}, []),
        (("b", 2), {"lower": "a", "upper": "b"}, []),
        (("b", 2), {"lower": "A", "upper": "z"}, []),
        (("b", 2), {"lower": "b"}, ["lower"]),
        (("b", 2), {"upper": "a"}, ["upper"]),
        (("b", 2), {"lower": "aa", "upper": "aa"}, ["lower", "upper"]),
        (None, {"lower": "a"}, []),
        (None, {"lower": "a", "upper": "z"}, ["upper"]),
    ],
)
def test_span_bounds_may_be_wider_but_not_narrower(
    tmp_path: Path, upper: tuple[str, int] | None, stated: dict[str, str], told: list[str]
) -> None:
    """RD-6, FM-15: an open side has no bound, and a missing bound rules out nothing."""
    table = two_files(tmp_path)
    table.delete_range(lower=("a", 1), upper=upper)
    bounds = {f"{side}_bounds": {1: stated[side].encode()} if side in stated else None for side in ("lower", "upper")}
    alter_files(table, lambda file: replace(file, **bounds) if isinstance(file, DeleteFile) else file)
    findings = table.verify(deep=True).findings
    assert [each.kind for each in findings] == [FindingKind.WRONG_BOUNDS] * len(told)
    assert [side for each in findings for side in ("lower", "upper") if f"{side} bound" in each.what] == told
