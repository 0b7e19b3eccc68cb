"""Requirements of a commit that drops snapshots, schemas or specs, in local catalogs and in catalog servers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update import AssertRefSnapshotId, TableRequirement
from pyiceberg.types import LongType

import tableformat as tf
from tableformat.commit import metadata_commit
from tableformat.commit.metadata_commit import refs_are_unchanged
from tableformat.maintenance.expiry.expired_metadata import UnneededMetadata, unneeded_metadata


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    made = catalog.create_table("db.t", pa.schema({"id": pa.int64()}))
    made.append(pa.table({"id": [1]}))
    return made.create_tag("first")


def named(requirements: Sequence[TableRequirement]) -> dict[str, int | None]:
    return {each.ref: each.snapshot_id for each in requirements if isinstance(each, AssertRefSnapshotId)}


def test_rest_requirements_use_only_known_refs(table: tf.Table) -> None:
    """MT-2: refs at their current snapshots; the names of dropped refs, whose batch records are removed, must still be
    unused."""
    with mock.patch.object(metadata_commit, "is_rest", lambda catalog: catalog is table.iceberg.catalog):
        found = refs_are_unchanged(table.iceberg, but_gone=["late", "first"])
    assert named(found) == {"main": table.snapshot_id, "first": table.snapshot_id, "late": None}
    assert len(found) == 3


def test_embedded_catalog_requires_that_no_ref_was_added(table: tf.Table) -> None:
    """MT-2"""
    found = refs_are_unchanged(table.iceberg, but_gone=["late"])
    assert named(found) == {"main": table.snapshot_id, "first": table.snapshot_id, "late": None}
    for requirement in found:
        requirement.validate(table.metadata)
    table.create_tag("others").create_branch("another")
    with pytest.raises(CommitFailedException):
        found[-1].validate(table.metadata)


def test_removed_schemas_and_specs_require_which_ones_are_current(table: tf.Table) -> None:
    """MT-1: a server applies the updates without a check, and a removed schema or spec may be the current one again."""
    for name in ("more", "other"):
        with table.update_schema() as update:
            update.add_column(name, LongType())
    cleaned = unneeded_metadata(table.iceberg.io, table.metadata)
    assert cleaned.schema_ids == (1,)
    schema, spec = cleaned.requirements(table.metadata)
    schema.validate(table.metadata)
    spec.validate(table.metadata)
    with table.update_schema() as update:
        update.delete_column("other")
    with table.update_spec() as update:
        update.add_identity("id")
    for requirement in (schema, spec):
        with pytest.raises(CommitFailedException):
            requirement.validate(table.metadata)
    assert UnneededMetadata().requirements(table.metadata) == []
