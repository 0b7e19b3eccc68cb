"""Changes of the definition of a table, through a handle that was loaded before another writer changed the same
thing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField

import tableformat as tf
from tableformat.errors import CommitConflictError, InvalidArgumentError, TableFormatError
from tableformat.properties import RANGE_PARTITIONS
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in ("id", "v")])
RANGES = tf.RangePartitions(on=["v"], bounds=[(0, 10)])
Act = Callable[[tf.Table], Any]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[tf.Catalog]:
    with new_lake(tmp_path / "lake") as opened:
        yield opened


@pytest.fixture
def table(catalog: tf.Catalog) -> tf.Table:
    made = catalog.create_table("db.t", SCHEMA, key=["id"])
    made.append({"id": 1, "v": 2})
    return made


def rename(table: tf.Table) -> None:
    with table.update_schema() as update:
        update.rename_column("v", "w")


def drop(table: tf.Table) -> None:
    with table.update_schema() as update:
        update.delete_column("v")


def make_optional(table: tf.Table) -> None:
    with table.update_schema() as update:
        update.make_column_optional("v")


def partition_by_v(table: tf.Table) -> None:
    with table.update_spec() as update:
        update.add_field("v", IdentityTransform())


def name_v(table: tf.Table) -> None:
    expression = '{"type": "gt", "term": "v", "value": 0}'
    table.set_properties({"tableformat.check.positive": "v > 0", "tableformat.check-expression.positive": expression})


CHANGES_OF_COLUMNS: dict[str, tuple[Act, Act]] = {
    "dropped, and a constraint names it": (drop, lambda table: table.add_check("positive", "v > 0")),
    "renamed, and a constraint names it": (rename, lambda table: table.add_check("positive", "v > 0")),
    "dropped, and rows lie by it": (drop, lambda table: table.range_partitions.define(RANGES)),
    "optional, and rows lie by it": (make_optional, lambda table: table.range_partitions.define(RANGES)),
    "dropped, and the source of a field": (drop, partition_by_v),
}


@pytest.mark.parametrize("name", CHANGES_OF_COLUMNS)
def test_concurrently_referenced_column_cannot_be_dropped(catalog: tf.Catalog, table: tf.Table, name: str) -> None:
    """CK-4, RP-2: otherwise rows could no longer be added."""
    change, other = CHANGES_OF_COLUMNS[name]
    behind = catalog.load_table("db.t")
    other(table)
    with pytest.raises(CommitConflictError):
        change(behind)
    assert behind.refresh().schema == SCHEMA
    behind.append({"id": 2, "v": 3})
    assert live_values(behind, "v") == [2, 3]


PROPERTIES: dict[str, tuple[Act, Act, str]] = {
    "a constraint on a dropped column": (name_v, drop, "unknown column 'v'"),
    "no bounds of a range column": (
        lambda table: table.set_properties({"write.metadata.metrics.column.v": "none"}),
        lambda table: table.range_partitions.define(RANGES),
        "range partitions use",
    ),
}


@pytest.mark.parametrize("name", PROPERTIES)
def test_properties_are_validated_against_the_current_table(catalog: tf.Catalog, table: tf.Table, name: str) -> None:
    """CK-6, RP-7: regardless of the state that the handle has loaded, also if the other commit comes between the check
    and the change."""
    change, other, told = PROPERTIES[name]
    behind = catalog.load_table("db.t")
    other(table)
    before = table.properties
    with pytest.raises(InvalidArgumentError, match=told):
        change(behind)
    assert table.refresh().properties == before


def test_concurrently_dropped_range_column_conflicts(
    catalog: tf.Catalog, table: tf.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RP-2: between the look at the table and the commit."""
    backend = catalog.iceberg
    commit, waiting = backend.commit_table, [lambda: drop(catalog.load_table("db.t"))]

    def late(*arguments: Any) -> Any:
        while waiting:
            waiting.pop()()
        return commit(*arguments)

    monkeypatch.setattr(backend, "commit_table", late)
    with pytest.raises(TableFormatError, match="'v'"):
        table.range_partitions.define(RANGES)
    found = catalog.load_table("db.t")
    assert RANGE_PARTITIONS not in found.properties
    assert found.schema.names == ["id"]


def test_concurrently_named_publish_target_cannot_be_moved(catalog: tf.Catalog, table: tf.Table) -> None:
    """MT-30: otherwise engines that cannot read range deletes would get one."""
    table.create_branch("tried")
    deleted = catalog.load_table("db.t", branch="tried").delete_prefix({"id": 1}).snapshot_id
    behind = catalog.load_table("db.t")
    table.refresh().create_branch("ingest").set_properties({"tableformat.publish-target.ingest": "main"})
    with pytest.raises(InvalidArgumentError, match="is the publish target of branch 'ingest'"):
        behind.set_current_snapshot(deleted)
    assert live_values(table.refresh(), "id") == [1]


def test_global_delete_with_concurrently_added_spec(catalog: tf.Catalog) -> None:
    """FM-5: in a table of another writer without a spec for it, through a handle that does not know the new spec."""
    schema = Schema(*(NestedField(number, name, LongType(), required=True) for number, name in ((1, "id"), (2, "v"))))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id"))
    catalog.iceberg.create_table("db.f", schema, partition_spec=spec)
    table = catalog.load_table("db.f")
    table.append([{"id": number, "v": number} for number in (1, 2)])
    behind = catalog.load_table("db.f")
    with table.update_spec() as update:
        update.add_field("v", BucketTransform(2), "bucket")
    behind.delete_range(lower=(0,), upper=(2,), on=["v"])
    assert live_values(table.refresh(), "v") == [2]
    ids = [each.spec_id for each in table.metadata.partition_specs]
    assert len(set(ids)) == len(ids) == 3
