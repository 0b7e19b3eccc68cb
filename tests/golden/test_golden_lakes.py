"""Lakes that released versions wrote, kept as they were: every snapshot of them is read as it was then."""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from golden_rows import expected_of
from pyiceberg.table.refs import SnapshotRefType

import tableformat as tf
from tableformat.metadata.content_file import DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.testing.table_rows import live_rows

LAKES = Path(__file__).parent / "lakes"
VERSIONS = sorted(path.name for path in LAKES.iterdir())
EXPECTED: dict[str, dict[str, Any]] = {
    release: json.loads((LAKES / release / "expected.json").read_text(encoding="utf-8")) for release in VERSIONS
}
TABLES = [(release, name) for release, expected in EXPECTED.items() for name in expected]


def directory_of(lake: Path, name: str) -> Path:
    return lake.joinpath(*name.split("."))


@pytest.fixture
def lake(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy, as a user would have of an old lake: not where its metadata says, and free to be changed."""
    copied = tmp_path / "old lake"
    shutil.copytree(LAKES / request.param / "lake", copied)
    return copied


def test_golden_lake_of_current_version_exists() -> None:
    """A release without one could not be held to what it wrote."""
    assert version("tableformat") in VERSIONS


@pytest.mark.parametrize(("lake", "name"), TABLES, indirect=["lake"])
def test_snapshots_of_old_tables_are_read_unchanged(lake: Path, name: str, request: pytest.FixtureRequest) -> None:
    """FM-24"""
    table = tf.read_metadata(directory_of(lake, name))
    expected = EXPECTED[request.node.callspec.params["lake"]][name]
    assert expected_of(table) == expected
    assert len(expected["snapshots"]) > 3


@pytest.mark.parametrize(("lake", "name"), TABLES, indirect=["lake"])
def test_old_tables_verify_without_findings(lake: Path, name: str) -> None:
    result = tf.read_metadata(directory_of(lake, name)).verify(deep=True)
    assert result.errors == (), str(result)


@pytest.mark.parametrize("lake", VERSIONS, indirect=True)
def test_golden_lakes_hold_every_kind_of_delete(lake: Path, request: pytest.FixtureRequest) -> None:
    names = EXPECTED[request.node.callspec.params["lake"]]
    kinds = {kind for name in names for kind in delete_kinds(tf.read_metadata(directory_of(lake, name)))}
    assert {kind for _, kind in kinds} == set(DeleteKind)
    # Version 3 keeps the position deletes of a table that was upgraded.
    assert (3, DeleteKind.POSITION) in kinds


def delete_kinds(table: tf.Table) -> set[tuple[int, DeleteKind]]:
    """Kinds of the delete files of all snapshots, with the table's format version."""
    views = [table.at(snapshot_id=snapshot.snapshot_id) for snapshot in table.metadata.snapshots]
    entries = [
        entry.file
        for view in views
        for manifest in manifests_of(view)
        for entry in live_entries(read_manifest(view.io, manifest, view.metadata))
    ]
    return {(table.metadata.format_version, file.kind) for file in entries if isinstance(file, DeleteFile)}


@pytest.mark.parametrize("lake", VERSIONS, indirect=True)
def test_catalogs_of_old_lakes_are_read(lake: Path, request: pytest.FixtureRequest) -> None:
    with tf.open_catalog(str(lake)) as catalog:
        assert catalog.list_tables("golden") == sorted(EXPECTED[request.node.callspec.params["lake"]])


@pytest.mark.parametrize("lake", VERSIONS, indirect=True)
def test_deletes_of_old_versions_are_converted(lake: Path) -> None:
    """FM-24, RD-6: those of 0.1 end as Parquet does, and their manifests have a spec in the header."""
    kinds = set()
    with tf.open_catalog(str(lake)) as catalog:
        catalog.relocate()
        for name in catalog.list_tables("golden"):
            refs = catalog.load_table(name).metadata.refs
            for branch in (ref for ref in refs if refs[ref].snapshot_ref_type is SnapshotRefType.BRANCH):
                table = catalog.load_table(name, branch=branch)
                kinds.update(table.inspect.delete_files()["kind"].to_pylist())
                before = live_rows(table)
                table.maintenance.convert_deletes()
                assert {"range", "equality"}.isdisjoint(table.inspect.delete_files()["kind"].to_pylist())
                assert live_rows(table.refresh()) == before
    assert {"range", "equality"} <= kinds
