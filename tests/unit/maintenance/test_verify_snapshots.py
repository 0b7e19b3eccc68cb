"""Verification of the live files of a snapshot as a whole: the file that a finding names, and valid metadata of other
writers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from damaged_tables import alter_entries, kinds
from maintenance_tables import keyed_table, rows
from pyiceberg.catalog.sql import SqlCatalog

import tableformat as tf
from tableformat.maintenance.verification.findings import FindingKind
from tableformat.metadata.content_file import DataFile
from tableformat.testing.table_files import live_data_files


def version_3(directory: Path, *sizes: int) -> tf.Table:
    """A table with a data file of so many rows for each."""
    table = keyed_table(directory, properties={"format-version": "3"})
    for number, size in enumerate(sizes):
        table.append(rows(str(number), range(size)))
    return table


def first_row_ids(*ids: int) -> Callable[[Any], Any]:
    """Set the first row ids of the data files of `version_3`, in order."""

    def change(entry: Any) -> Any:
        file = entry.file
        place = int(file.lower_bounds[1])
        return [replace(entry, file=replace(file, first_row_id=ids[place]))]

    return change


@pytest.mark.parametrize(
    ("sizes", "ids", "wrong"),
    [
        ((3, 3, 3), (0, 3, 6), []),
        ((3, 3, 3), (0, 3, 5), ["2"]),
        ((3, 3, 3), (6, 0, 2), ["2"]),
        ((6, 1, 1), (0, 5, 6), ["1"]),
        ((9, 1, 1), (0, 2, 4), ["1", "2"]),
        ((1, 1, 1), (0, 1, 1), ["2"]),
        ((3, 3, 3), (0, 3, 7), ["2"]),
    ],
    ids=["one after the other", "near", "in another order", "inside", "two inside", "single rows", "not given out"],
)
def test_overlapping_row_ids_finding_names_the_later_file(
    tmp_path: Path, sizes: tuple[int, ...], ids: tuple[int, ...], wrong: list[str]
) -> None:
    """MT-73: the later one of two files whose row ids overlap, regardless of the files between them."""
    table = version_3(tmp_path, *sizes)
    alter_entries(table, first_row_ids(*ids))
    found = table.verify()
    named = {file.file_path: int(file.lower_bounds[1]) for file in live_data_files(table) if file.lower_bounds}
    assert {each.kind for each in found.findings} <= {FindingKind.WRONG_ROW_IDS}
    assert sorted(str(named[each.file]) for each in found.findings) == wrong, str(found)


def test_dangling_vector_finding_names_the_data_file(tmp_path: Path) -> None:
    """MT-73"""
    table = version_3(tmp_path, 4, 4)
    table.delete("id2 = 1", mode="scan")
    gone = live_data_files(table)[0].file_path
    alter_entries(table, lambda entry: [] if entry.file.file_path == gone else [entry])
    (finding,) = (each for each in table.verify().findings if each.kind is FindingKind.DANGLING_VECTOR)
    assert gone in finding.what


def test_dead_position_deletes_of_older_snapshots_are_not_reported(tmp_path: Path) -> None:
    """MT-73: dead deletes are removed with their snapshot; dead deletes of the head are reported."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(4)))
    table.append(rows("b", range(4)))
    table.delete("id1 = 'a' and id2 = 1", mode="scan")
    gone = next(file for file in live_data_files(table) if file.sequence_number == 1).file_path
    alter_entries(table, lambda entry: [] if entry.file.file_path == gone else [entry])
    assert "dead-delete" in kinds(table.verify())
    table.maintenance.repair()
    assert "dead-delete" not in kinds(table.verify())
    assert all(isinstance(file, DataFile) for file in live_data_files(table))


def test_tables_upgraded_from_v1_verify_without_findings(tmp_path: Path) -> None:
    """DA-9: their snapshots, manifests and files have no numbers, which counts as 0."""
    catalog = SqlCatalog("x", uri=f"sqlite:///{tmp_path}/c.db", warehouse=tmp_path.as_uri())
    catalog.create_namespace("db")
    schema = pa.schema({"id": pa.int64()})
    made = catalog.create_table("db.t", schema, properties={"format-version": "1"})
    for number in range(2):
        made.append(pa.table({"id": [number]}, schema=schema))
    assert tf.read_metadata(made.metadata_location).verify(deep=True).findings == ()
    with made.transaction() as transaction:
        transaction.upgrade_table_version(2)
    assert tf.read_metadata(made.metadata_location).verify(deep=True).findings == ()
    made.append(pa.table({"id": [2]}, schema=schema))
    upgraded = tf.read_metadata(made.metadata_location)
    assert [each.sequence_number for each in upgraded.metadata.snapshots] == [0, 0, 1]
    found = upgraded.verify(deep=True)
    assert (found.findings, found.row_count, found.unchecksummed_file_count) == ((), 3, 3)
    assert upgraded.scan().count() == 3
