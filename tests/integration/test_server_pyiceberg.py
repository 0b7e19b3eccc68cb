"""PyIceberg's REST client on `serve`: each method of its catalog, and each change of a table while a range delete is
pending.

After each change this library and PyIceberg read the same rows, and the files match the metadata. PyIceberg 0.12 writes
rows into tables of version 2 only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.table.statistics import StatisticsFile
from pyiceberg.table.update import UpgradeFormatVersionUpdate
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion

import tableformat as tf
from tableformat.testing.table_rows import live_rows

COLUMNS = pa.schema(
    [
        pa.field("id1", pa.string(), nullable=False),
        pa.field("id2", pa.int64(), nullable=False),
        pa.field("v", pa.int32()),
    ]
)
Rows = list[dict[str, Any]]
Change = Callable[[IcebergTable], object]


def of(*rows: tuple[str, int, int | None]) -> pa.Table:
    return pa.Table.from_pylist([{"id1": a, "id2": b, "v": v} for a, b, v in rows], schema=COLUMNS)


@dataclass(frozen=True)
class Served:
    """A lake of this library, and PyIceberg's client of its server."""

    lake: tf.Catalog
    rest: IcebergCatalog

    def pending(self, version: int, **options: Any) -> tuple[tf.Table, IcebergTable]:
        """A table with the rows A and C; the range delete of B is pending."""
        name = f"db.t{uuid4().hex[:8]}"
        properties = {"format-version": str(version)}
        table = self.lake.create_table(name, COLUMNS, key=["id1", "id2"], properties=properties, **options)
        table.append(of(("A", 1, 10), ("A", 2, 20), ("B", 1, 30), ("C", 1, 40)))
        table.delete_prefix({"id1": "B"})
        return table, self.rest.load_table(name)

    def same_rows(self, table: tf.Table) -> Rows:
        """The rows of a table, which both libraries read."""
        ours = live_rows(table.refresh())
        assert live_rows(self.rest.load_table(table.name)) == ours
        assert table.verify(deep=True).is_clean
        return ours


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with tf.open_catalog(str(tmp_path_factory.mktemp("lake") / "lake")) as lake:
        lake.create_namespace("db")
        with tf.serve(lake, freshness_seconds=0) as server:
            yield Served(lake, load_catalog("rest", type="rest", uri=server.url))


BEFORE: Rows = of(("A", 1, 10), ("A", 2, 20), ("C", 1, 40)).to_pylist()


def add_files(table: IcebergTable) -> None:
    file = f"{table.location().removeprefix('file://')}/data/foreign-{uuid4()}.parquet"
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(of(("D", 1, 50)), file)
    table.add_files([file])


def several(table: IcebergTable) -> None:
    with table.transaction() as transaction:
        transaction.append(of(("D", 1, 50)))
        transaction.delete("id1 = 'C'")
        transaction.set_properties(note="several")


ROW_CHANGES: dict[str, tuple[Change, pa.Table]] = {
    "append": (
        lambda table: table.append(of(("D", 1, 50))),
        of(("A", 1, 10), ("A", 2, 20), ("C", 1, 40), ("D", 1, 50)),
    ),
    "overwrite": (lambda table: table.overwrite(of(("D", 1, 50))), of(("D", 1, 50))),
    "overwrite with a filter": (
        lambda table: table.overwrite(of(("D", 1, 50)), overwrite_filter="id1 = 'A' and id2 = 2"),
        of(("A", 1, 10), ("C", 1, 40), ("D", 1, 50)),
    ),
    "delete": (lambda table: table.delete("id2 = 1"), of(("A", 2, 20))),
    "delete everything": (lambda table: table.delete("true"), of()),
    "delete nothing": (lambda table: table.delete("id1 = 'B'"), of(("A", 1, 10), ("A", 2, 20), ("C", 1, 40))),
    "upsert": (
        lambda table: table.upsert(of(("A", 1, 11), ("B", 1, 31))),
        of(("A", 1, 11), ("A", 2, 20), ("B", 1, 31), ("C", 1, 40)),
    ),
    "add files": (add_files, of(("A", 1, 10), ("A", 2, 20), ("C", 1, 40), ("D", 1, 50))),
    "transaction": (several, of(("A", 1, 10), ("A", 2, 20), ("D", 1, 50))),
}


@pytest.mark.parametrize("change", list(ROW_CHANGES))
def test_row_changes_with_pending_range_delete(served: Served, change: str) -> None:
    """SV-9: the change is made on the conversion. A later range delete is served, too."""
    table, rest = served.pending(2)
    act, after = ROW_CHANGES[change]
    act(rest)
    assert served.same_rows(table) == after.to_pylist()
    table.refresh().replace(of(("C", 7, 70)), prefix=["id1"])
    expected = [row for row in after.to_pylist() if row["id1"] != "C"] + of(("C", 7, 70)).to_pylist()
    assert served.same_rows(table) == sorted(expected, key=lambda row: (row["id1"], row["id2"]))


def test_alternating_changes_of_both_writers(served: Served) -> None:
    """Each writer changes the table after the other, and a handle of PyIceberg stays loaded."""
    table, rest = served.pending(2)
    for number in range(4):
        table.refresh().replace(of(("A", number, number)), prefix=["id1"])
        rest.refresh().upsert(of(("C", 1, number)))
        table.refresh().delete_prefix({"id1": "D"})
        rest.refresh().append(of(("D", number, number)))
        assert served.same_rows(table) == of(("A", number, number), ("C", 1, number), ("D", number, number)).to_pylist()


def test_dynamic_partition_overwrite(served: Served) -> None:
    table, rest = served.pending(2, partition_by=["id1"])
    rest.dynamic_partition_overwrite(of(("A", 9, 90), ("E", 1, 50)))
    assert served.same_rows(table) == of(("A", 9, 90), ("C", 1, 40), ("E", 1, 50)).to_pylist()


def test_changes_based_on_an_older_snapshot(served: Served) -> None:
    """An append by a handle that does not know a later range delete is made on the newest state. A delete, which read
    the older state, is refused."""
    table, rest = served.pending(2)
    stale = served.rest.load_table(table.name)
    table.refresh().delete_prefix({"id1": "C"})
    rest.append(of(("D", 1, 50)))
    assert served.same_rows(table) == of(("A", 1, 10), ("A", 2, 20), ("D", 1, 50)).to_pylist()
    with pytest.raises((CommitFailedException, ValidationException)):
        stale.delete("id2 = 1")
    assert served.same_rows(table) == of(("A", 1, 10), ("A", 2, 20), ("D", 1, 50)).to_pylist()


def statistics_of(table: IcebergTable) -> StatisticsFile:
    return StatisticsFile.model_validate(
        {
            "snapshot-id": table.metadata.current_snapshot_id,
            "statistics-path": f"{table.location()}/metadata/{uuid4()}.stats",
            "file-size-in-bytes": 10,
            "file-footer-size-in-bytes": 5,
            "blob-metadata": [],
        }
    )


def with_schema(act: Callable[[Any], object]) -> Change:
    def change(table: IcebergTable) -> None:
        with table.update_schema() as update:
            act(update)

    return change


def with_spec(*acts: Callable[[Any], object]) -> Change:
    def change(table: IcebergTable) -> None:
        for act in acts:
            with table.update_spec() as update:
                act(update)

    return change


def with_order(table: IcebergTable) -> None:
    with table.update_sort_order() as update:
        update.desc("v", IdentityTransform())


def with_statistics(table: IcebergTable) -> None:
    file = statistics_of(table)
    with table.update_statistics() as update:
        update.set_statistics(file)
    assert table.metadata.statistics == [file]
    with table.update_statistics() as update:
        update.remove_statistics(file.snapshot_id)
    assert table.metadata.statistics == []


def with_properties(table: IcebergTable) -> None:
    with table.transaction() as transaction:
        transaction.set_properties(a="1", b="2")
    with table.transaction() as transaction:
        transaction.remove_properties("a")
    assert "a" not in table.properties
    assert table.properties["b"] == "2"


def with_branch_and_tag(table: IcebergTable) -> None:
    head = table.metadata.current_snapshot_id
    assert head is not None
    with table.manage_snapshots() as manage:
        manage.create_branch(head, "aside", max_ref_age_ms=10_000_000).create_tag(head, "first")
    assert set(table.refs()) == {"main", "aside", "first"}
    with table.manage_snapshots() as manage:
        manage.remove_branch("aside").remove_tag("first")
    assert set(table.refs()) == {"main"}


def named(name: str) -> Callable[[Rows], Rows]:
    return lambda rows: [{**row, name: None} for row in rows]


def same(rows: Rows) -> Rows:
    return rows


METADATA_CHANGES: dict[str, tuple[Change, Callable[[Rows], Rows]]] = {
    "add a column": (with_schema(lambda update: update.add_column("w", LongType(), doc="new")), named("w")),
    "rename a column": (
        with_schema(lambda update: update.rename_column("v", "w")),
        lambda rows: [{"id1": row["id1"], "id2": row["id2"], "w": row["v"]} for row in rows],
    ),
    "drop a column": (
        with_schema(lambda update: update.delete_column("v")),
        lambda rows: [{"id1": row["id1"], "id2": row["id2"]} for row in rows],
    ),
    "widen a column": (with_schema(lambda update: update.update_column("v", LongType())), same),
    "move a column": (
        with_schema(lambda update: update.add_column("w", StringType()).move_after("w", "id1")),
        lambda rows: [{"id1": row["id1"], "w": None, "id2": row["id2"], "v": row["v"]} for row in rows],
    ),
    "union by name": (
        with_schema(lambda update: update.union_by_name(COLUMNS.append(pa.field("w", pa.int64())))),
        named("w"),
    ),
    "evolve the partition spec": (
        with_spec(
            lambda update: update.add_identity("id1"),
            lambda update: update.add_field("id2", BucketTransform(4), "id2_bucket"),
            lambda update: update.rename_field("id2_bucket", "bucket"),
            lambda update: update.remove_field("bucket"),
        ),
        same,
    ),
    "set the sort order": (with_order, same),
    "properties": (with_properties, same),
    "statistics": (with_statistics, same),
    "branch and tag": (with_branch_and_tag, same),
}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("change", list(METADATA_CHANGES))
def test_metadata_changes(served: Served, change: str, version: int) -> None:
    table, rest = served.pending(version)
    act, after = METADATA_CHANGES[change]
    act(rest)
    assert served.same_rows(table) == after(BEFORE)
    table.refresh().delete_prefix({"id1": "C"})
    assert served.same_rows(table) == after(BEFORE[:2])


def test_readded_schema_gets_its_old_id(served: Served) -> None:
    """CP-92: a schema that the table had before has its old id again."""
    table, rest = served.pending(2)
    first = rest.schema().schema_id
    with_schema(lambda update: update.rename_column("v", "w"))(rest)
    with_schema(lambda update: update.rename_column("w", "v"))(rest)
    assert rest.schema().schema_id == first
    assert served.same_rows(table) == BEFORE


def test_upgrade_to_version_3(served: Served) -> None:
    table, rest = served.pending(2)
    served.rest.commit_table(rest, (), (UpgradeFormatVersionUpdate.model_validate({"format-version": 3}),))
    assert served.rest.load_table(table.name).format_version == 3
    assert served.same_rows(table) == BEFORE
    table.refresh().delete_prefix({"id1": "C"})
    assert served.same_rows(table) == BEFORE[:2]


def test_branch_of_the_conversion_is_written_and_read(served: Served) -> None:
    """A branch of the conversion is written and read; `main` is not moved by that."""
    table, rest = served.pending(2)
    head = rest.metadata.current_snapshot_id
    assert head is not None
    rest.manage_snapshots().create_branch(head, "aside").commit()
    rest.append(of(("D", 1, 50)), branch="aside")
    rest.delete("id1 = 'A'", branch="aside")
    expected = of(("C", 1, 40), ("D", 1, 50)).to_pylist()
    loaded = served.rest.load_table(table.name)
    assert sorted(loaded.scan().use_ref("aside").to_arrow().to_pylist(), key=lambda row: row["id1"]) == expected
    assert live_rows(table.refresh(), branch="aside") == expected
    assert served.same_rows(table) == BEFORE


@pytest.mark.parametrize("version", [2, 3])
def test_rollback_and_expiry(served: Served, version: int) -> None:
    """`main` goes back to the conversion of an earlier state; then the later states expire."""
    table, rest = served.pending(version)
    earlier = rest.metadata.current_snapshot_id
    assert earlier is not None
    rest.manage_snapshots().create_tag(earlier, "kept").commit()
    table.refresh().delete_prefix({"id1": "C"})
    rest.refresh()
    assert live_rows(rest) == BEFORE[:2]
    rest.manage_snapshots().set_current_snapshot(snapshot_id=earlier).commit()
    assert served.same_rows(table) == BEFORE
    rest.refresh()
    assert rest.metadata.current_snapshot_id == earlier
    named_ids = {ref.snapshot_id for ref in rest.refs().values()}
    gone = [snapshot.snapshot_id for snapshot in rest.snapshots() if snapshot.snapshot_id not in named_ids]
    rest.maintenance.expire_snapshots().by_ids(gone).commit()
    assert served.same_rows(table) == BEFORE
    assert not {snapshot.snapshot_id for snapshot in served.rest.load_table(table.name).snapshots()} & set(gone)


def test_expiry_of_the_conversion_source(served: Served) -> None:
    """SV-9: the client sees the conversion as the head, and may let its source expire."""
    table, rest = served.pending(2)
    head = rest.metadata.current_snapshot_id
    others = [snapshot.snapshot_id for snapshot in rest.snapshots() if snapshot.snapshot_id != head]
    rest.maintenance.expire_snapshots().by_ids(others).commit()
    assert served.same_rows(table) == BEFORE
    assert [snapshot.snapshot_id for snapshot in served.rest.load_table(table.name).snapshots()] == [head]


def test_server_side_planning_of_every_snapshot(served: Served) -> None:
    """Every past snapshot is read by its own id."""
    table, _ = served.pending(2)
    rest = load_catalog("plans", type="rest", uri=served.rest.properties["uri"], **{"scan-planning-mode": "server"})
    loaded = rest.load_table(table.name)
    assert live_rows(loaded) == BEFORE
    for snapshot_id in table.history()["snapshot_id"].to_pylist():
        ours = live_rows(table.refresh(), snapshot_id=snapshot_id)
        assert live_rows(loaded, snapshot_id=snapshot_id) == ours


SCHEMA = Schema(
    NestedField(7, "id", LongType(), required=True),
    NestedField(9, "name", StringType(), required=False, doc="a name"),
    identifier_field_ids=[7],
)
SPEC = PartitionSpec(PartitionField(source_id=7, field_id=1000, transform=BucketTransform(4), name="bucket"))
ORDER = SortOrder(SortField(source_id=9, transform=IdentityTransform()))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_create_table(served: Served, version: int) -> None:
    """The server assigns field ids from 1 on, also in the partition spec and the sort order."""
    name = f"db.c{uuid4().hex[:8]}"
    made = served.rest.create_table(
        name, SCHEMA, partition_spec=SPEC, sort_order=ORDER, properties={"format-version": str(version), "a": "1"}
    )
    assert [field.field_id for field in made.schema().fields] == [1, 2]
    assert made.schema().identifier_field_ids == [1]
    assert [field.source_id for field in made.spec().fields] == [1]
    assert [field.source_id for field in made.sort_order().fields] == [2]
    assert made.format_version == version
    assert made.properties["a"] == "1"
    with pytest.raises(TableAlreadyExistsError):
        served.rest.create_table(name, SCHEMA)
    assert served.rest.create_table_if_not_exists(name, SCHEMA).metadata == made.metadata


def test_create_table_at_a_location(served: Served, tmp_path: Path) -> None:
    location = f"file://{tmp_path}/elsewhere"
    made = served.rest.create_table(f"db.c{uuid4().hex[:8]}", SCHEMA, location=f"{location}/")
    assert made.location().rstrip("/") == location
    assert made.metadata_location.startswith(f"{location}/metadata/")


def test_create_table_transaction(served: Served) -> None:
    name = f"db.c{uuid4().hex[:8]}"
    columns = [pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())]
    rows = pa.Table.from_pylist([{"id": 1, "name": "a"}, {"id": 2, "name": None}], schema=pa.schema(columns))
    with served.rest.create_table_transaction(name, SCHEMA, properties={"format-version": "2"}) as creation:
        assert not served.rest.table_exists(name)
        with creation.update_schema() as update:
            update.add_column("later", IntegerType())
        creation.append(rows)
        creation.set_properties(note="created")
    table = served.lake.load_table(name)
    assert served.same_rows(table) == [{"id": 1, "name": "a", "later": None}, {"id": 2, "name": None, "later": None}]
    with pytest.raises(TableAlreadyExistsError):
        served.rest.create_table_transaction(name, SCHEMA)


def test_table_name_operations(served: Served) -> None:
    """List, exists, rename, register, drop, purge."""
    rest = served.rest
    rest.create_namespace("names")
    rest.create_namespace("other")
    table, _ = served.pending(2)
    moved = f"other.{table.name.partition('.')[2]}"
    rest.rename_table(table.name, moved)
    assert rest.table_exists(moved)
    assert not rest.table_exists(table.name)
    assert rest.list_tables("other") == [tuple(moved.split("."))]
    assert live_rows(rest.load_table(moved)) == BEFORE
    with pytest.raises(NoSuchTableError):
        rest.load_table(table.name)
    with pytest.raises(NoSuchTableError):
        rest.rename_table(table.name, "other.x")
    location = served.lake.load_table(moved).iceberg.metadata_location
    rest.drop_table(moved)
    with pytest.raises(NoSuchTableError):
        rest.drop_table(moved)
    registered = rest.register_table("names.again", location)
    assert live_rows(registered) == BEFORE
    with pytest.raises(TableAlreadyExistsError):
        rest.register_table("names.again", location)
    assert served.same_rows(served.lake.load_table("names.again")) == BEFORE
    directory = Path(registered.location().removeprefix("file://"))
    assert list(directory.rglob("*.parquet"))
    rest.purge_table("names.again")
    assert not list(directory.rglob("*.parquet"))
    assert not rest.table_exists("names.again")
    rest.drop_namespace("names")
    rest.drop_namespace("other")


@pytest.mark.parametrize("name", ["with space", "ünï-cödé", "a/b", "100%", "q?x=1&y", "plus+plus", "new.dot"])
def test_unusual_table_names(served: Served, name: str) -> None:
    identifier = ("db", name)
    served.rest.create_table(identifier, SCHEMA)
    assert served.rest.table_exists(identifier)
    assert served.rest.load_table(identifier).name() == identifier
    assert identifier in served.rest.list_tables("db")
    served.rest.drop_table(identifier)
    assert not served.rest.table_exists(identifier)


def test_namespaces(served: Served) -> None:
    rest = served.rest
    rest.create_namespace("space", {"owner": "me", "a": "1"})
    with pytest.raises(NamespaceAlreadyExistsError):
        rest.create_namespace("space")
    rest.create_namespace_if_not_exists("space")
    assert rest.namespace_exists("space")
    assert not rest.namespace_exists("nowhere")
    rest.create_namespace(("space", "inner"))
    assert rest.list_namespaces("space") == [("space", "inner")]
    assert ("space",) in rest.list_namespaces()
    assert rest.load_namespace_properties("space") == {"owner": "me", "a": "1"}
    changed = rest.update_namespace_properties("space", removals={"a", "missing"}, updates={"b": "2"})
    assert (changed.removed, changed.updated, changed.missing) == (["a"], ["b"], ["missing"])
    assert rest.load_namespace_properties("space") == {"owner": "me", "b": "2"}
    with pytest.raises(NamespaceNotEmptyError):
        rest.drop_namespace("space")
    rest.drop_namespace(("space", "inner"))
    rest.drop_namespace("space")
    for call in (rest.load_namespace_properties, rest.drop_namespace, rest.list_tables, rest.list_namespaces):
        with pytest.raises(NoSuchNamespaceError):
            call("space")


def view_version(sql: str) -> ViewVersion:
    return ViewVersion.model_validate(
        {
            "version-id": 1,
            "schema-id": 0,
            "timestamp-ms": 1,
            "summary": {"engine": "test"},
            "representations": [ViewRepresentation(SQLViewRepresentation(type="sql", sql=sql, dialect="spark"))],
            "default-namespace": ["db"],
        }
    )


def test_views(served: Served) -> None:
    """Create, list, load, register, drop. PyIceberg's client cannot replace a view."""
    rest = served.rest
    made = rest.create_view("db.v", SCHEMA, view_version("SELECT 1"), properties={"a": "1", "gc.enabled": "false"})
    assert made.metadata.properties["a"] == "1"
    assert rest.view_exists("db.v")
    assert rest.list_views("db") == [("db", "v")]
    assert rest.load_view("db.v").metadata == made.metadata
    assert served.lake.list_views("db") == ["db.v"]
    file = served.lake.views._row(("db", "v"))[0]  # type: ignore[attr-defined]
    rest.drop_view("db.v")
    assert not rest.view_exists("db.v")
    again = rest.register_view("db.v", file)
    assert again.metadata == made.metadata
    rest.drop_view("db.v")
    with pytest.raises(NoSuchViewError):
        rest.load_view("db.v")
    with pytest.raises(NoSuchViewError):
        rest.drop_view("db.v")
