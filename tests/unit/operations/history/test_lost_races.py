"""Metadata-only changes that lose a race against another commit in the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from commit_tables import FAST_RETRIES
from new_lakes import new_lake
from pyiceberg.types import LongType

import tableformat as tf
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.errors import CommitConflictError, SnapshotNotFoundError
from tableformat.operations.history.cherrypick import cherrypick

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    made = catalog.create_table("db.t", SCHEMA, key=["id"], properties=FAST_RETRIES)
    made.append(pa.table({"id": [1]}, schema=SCHEMA))
    return made


@contextmanager
def overtaken(table: tf.Table, *others: Callable[[tf.Table], Any]) -> Iterator[None]:
    """Others commit after the metadata of the next commits was written, and before it is made current."""
    waiting, point_to = list(others), EmbeddedCatalog.point_to

    def late(self: EmbeddedCatalog, *arguments: Any, **options: Any) -> None:
        if waiting:
            other = waiting.pop()
            assert table.catalog is not None
            other(table.catalog.load_table(table.name))
        point_to(self, *arguments, **options)

    with mock.patch.object(EmbeddedCatalog, "point_to", late):
        yield
    assert not waiting


def add_column(table: tf.Table, name: str) -> None:
    with table.update_schema() as update:
        update.add_column(name, LongType())


CHANGES: dict[str, tuple[Callable[[tf.Table], Any], Callable[[tf.Table], Any]]] = {
    "properties": (lambda table: table.set_properties(owner="me"), lambda table: table.properties["owner"]),
    "tag": (lambda table: table.create_tag("loaded"), lambda table: table.scan(tag="loaded").count()),
    "branch": (lambda table: table.create_branch("b"), lambda table: table.scan(branch="b").count()),
    "schema": (lambda table: add_column(table, "more"), lambda table: table.schema.field("more")),
    "upgrade": (lambda table: table.upgrade(), lambda table: table.metadata.format_version == 3),
}


@pytest.mark.parametrize("change", CHANGES)
def test_metadata_change_is_retried_after_concurrent_append(table: tf.Table, change: str) -> None:
    """CP-26: with a concurrent stream, every change of a property or a tag would compete with the next append."""
    make, is_made = CHANGES[change]
    handle, numbers = table.catalog.load_table("db.t"), iter(range(2, 9))  # type: ignore[union-attr]

    def append(other: tf.Table) -> None:
        other.append(pa.table({"id": [next(numbers)]}, schema=SCHEMA))

    with overtaken(table, append, append):
        make(handle)
    assert is_made(table.refresh())
    assert table.scan().count() == 3


def test_metadata_change_with_changed_basis_conflicts(table: tf.Table) -> None:
    handle = table.catalog.load_table("db.t")  # type: ignore[union-attr]
    with (
        overtaken(table, lambda other: add_column(other, "theirs")),
        pytest.raises(CommitConflictError),
    ):
        add_column(handle, "ours")
    assert table.refresh().schema.names == ["id", "theirs"]


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (lambda other: other.create_branch("b"), "b was created concurrently"),
        (lambda other: other.set_properties(owner="me"), "lost the race"),
    ],
)
def test_constraint_that_lost_a_race_is_not_retried(
    table: tf.Table, other: Callable[[tf.Table], Any], told: str
) -> None:
    """CK-8: a branch that was created in the meantime may have rows that violate it, and not every catalog supports a
    requirement that names the branch."""
    handle = table.catalog.load_table("db.t")  # type: ignore[union-attr]
    with (
        overtaken(table, other),
        pytest.raises(CommitConflictError, match=rf"{told}.*Nothing was changed"),
    ):
        handle.add_check("positive", "id > 0")
    assert not [name for name in table.refresh().properties if name.startswith("tableformat.check")]


@contextmanager
def overtaken_before_its_request(other: Callable[[], Any]) -> Iterator[None]:
    """Let another writer commit after the next commit has read the head, and before it calls the catalog."""
    waiting, commit_table = [other], EmbeddedCatalog.commit_table

    def late(self: EmbeddedCatalog, *arguments: Any, **options: Any) -> Any:
        while waiting:
            waiting.pop()()
        return commit_table(self, *arguments, **options)

    with mock.patch.object(EmbeddedCatalog, "commit_table", late):
        yield


def expire_everything(table: tf.Table) -> None:
    table.maintenance.expire_snapshots(retain_last=1, older_than=2**42)


def test_staged_snapshot_expired_during_cherry_pick_is_not_published(table: tf.Table) -> None:
    """CP-62: its files were removed, and the branch that had got them could not be read."""
    catalog = table.catalog
    assert catalog is not None
    table.create_branch("staging")
    staged = catalog.load_table("db.t", branch="staging").append(pa.table({"id": [2]}, schema=SCHEMA)).snapshot_id
    assert staged is not None
    table.refresh().append(pa.table({"id": [3]}, schema=SCHEMA))
    table.drop_branch("staging")
    other = catalog.load_table("db.t")
    with (
        overtaken_before_its_request(lambda: expire_everything(other)),
        pytest.raises(SnapshotNotFoundError, match=str(staged)),
    ):
        cherrypick(table.iceberg, "main", staged)
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 3]


def test_cherry_pick_of_staged_snapshot_leaves_no_tag(table: tf.Table) -> None:
    """CP-62"""
    table.create_branch("staging")
    assert table.catalog is not None
    staged = table.catalog.load_table("db.t", branch="staging").append(pa.table({"id": [2]}, schema=SCHEMA)).snapshot_id
    assert staged is not None
    table.refresh().append(pa.table({"id": [3]}, schema=SCHEMA))
    cherrypick(table.iceberg, "main", staged)
    assert sorted(table.refresh().metadata.refs) == ["main", "staging"]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_range_whose_tag_expires_during_restore_stays_retired(tmp_path: Path) -> None:
    """CP-62: the same as above, if another writer drops the tag."""
    catalog = new_lake(tmp_path / "lake")
    ranges = tf.RangePartitions(on=["id"], bounds=[(0, 20)], step=10)
    made = catalog.create_table("db.t", SCHEMA, key=["id"], range_partitions=ranges, properties=FAST_RETRIES)
    made.append(pa.table({"id": [1, 11]}, schema=SCHEMA))
    tag = made.range_partitions.retire(10, 20).tag
    assert tag is not None

    def drop_and_expire() -> None:
        other = catalog.load_table("db.t")
        other.drop_tag(tag)
        expire_everything(other)

    with overtaken_before_its_request(drop_and_expire), pytest.raises(SnapshotNotFoundError, match=tag):
        made.range_partitions.restore(tag)
    assert made.refresh().scan().to_arrow()["id"].to_pylist() == [1]
