"""Invalid arguments and missing objects: an error of the library that names the problem."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.expressions import And, EqualTo

import tableformat as tf
from tableformat.errors import (
    CorruptFileError,
    InvalidArgumentError,
    InvalidPredicateError,
    SnapshotNotFoundError,
    StorageError,
    TableNotFoundError,
    UnknownOptionError,
    UnsupportedFeatureError,
)
from tableformat.operations.row_lookup import duplicates

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("at", pa.timestamp("us")), ("day", pa.date32())])
ROWS = pa.table({"id": [1], "at": [dt.datetime(2026, 1, 2)], "day": [dt.date(2026, 1, 2)]}, schema=SCHEMA)


@pytest.fixture
def catalog(tmp_path: Path) -> tf.Catalog:
    return new_lake(f"{tmp_path}/lake")


@pytest.fixture
def table(catalog: tf.Catalog) -> tf.Table:
    created = catalog.create_table("db.t", SCHEMA, key=["id"])
    created.append(ROWS)
    return created


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda table: table.create_tag(5), "name must be text, not 5"),
        (lambda table: table.drop_branch(["x"]), r"name must be text, not \['x'\] \(list\)"),
        (lambda table: table.verify(progress=("db",)), "progress must be a Progress or None"),
        (lambda table: table.scan(limit="3"), "limit must be a whole number or None, not the text '3'"),
        (lambda table: table.scan().columns_of(1j), "names must be a list with each item text"),
        (lambda table: table.set_properties(["x"]), "properties must be a mapping or None"),
        (lambda table: table.set_key([1]), "columns must be a list with each item text"),
        (lambda table: table.fast_forward("main", to="\ud800"), "to must be text"),
        (lambda table: table.maintenance.run(byte_budget={}), "byte_budget must be a whole number or None"),
        (lambda table: table.append(pa.array([1])), "cannot be read as rows"),
        (lambda table: table.append(ROWS, application_id=1, batch_id=2), "application_id must be text or None"),
        (lambda table: table.append(ROWS, snapshot_properties=["x"]), "snapshot_properties must be a mapping"),
        (lambda table: table.maintenance.plan_compaction(z_order=ROWS), "z_order must be a list"),
        (lambda table: table.maintenance.compact(sort_by=[["id"]]), "sort_by must be a list with each item text"),
        (lambda table: table.maintenance.compact(rewrite_all="no"), "rewrite_all must be True or False"),
        (lambda table: table.get({None: 1}), "unknown column None in the key"),
        (lambda table: table.update("id = 1", set={None: 1}), "unknown column None"),
        (
            lambda table: table.append(ROWS, snapshot_properties={"by": 1}),
            "snapshot_properties must be text, but 'by' is 1",
        ),
        (
            lambda table: table.append(ROWS, snapshot_properties={1: "x"}),
            "snapshot_properties must be text, but the name 1",
        ),
        (
            lambda table: table.set_properties({"x": True}),
            "properties must be text, but 'x' is True.* Write 'x': 'true'",
        ),
        (
            lambda table: table.maintenance.remove_orphan_files(equal_authorities={"a": 1}, dry_run=True),
            "equal_authorities must be text, but 'a' is 1",
        ),
        (
            lambda table: table.add_files(["x"], partitions="/"),
            "partitions must be a list with each item a mapping or None",
        ),
        (lambda table: table.scan().to_duckdb(connection=5), "connection must be a DuckDB connection"),
    ],
)
def test_argument_of_wrong_type_is_rejected(table: tf.Table, call: Callable[[tf.Table], object], told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        call(table)
    assert table.refresh().scan().count() == 1


@pytest.mark.parametrize("moment", [-(2**63), -(10**30)])
def test_timestamp_out_of_range_finds_no_snapshot(table: tf.Table, moment: int) -> None:
    with pytest.raises(SnapshotNotFoundError):
        table.rollback(as_of=moment)


@pytest.mark.parametrize("location", ["s3://", "s3:///x"])
def test_invalid_location_is_rejected(catalog: tf.Catalog, table: tf.Table, location: str) -> None:
    with pytest.raises(InvalidArgumentError):
        catalog.register_table("db.other", location)
    with pytest.raises(InvalidArgumentError):
        table.add_files([location])
    assert catalog.list_tables("db") == ["db.t"]


def test_unprintable_value_is_reported_in_errors(table: tf.Table) -> None:
    deep: list[object] = []
    for _ in range(sys.getrecursionlimit()):
        deep = [deep]
    with pytest.raises(InvalidArgumentError, match=r"not an object \(list\)"):
        table.get(deep)
    with pytest.raises(InvalidArgumentError, match=r"'x' is an object \(list\)"):
        table.set_properties({"x": deep})  # type: ignore[dict-item]
    with pytest.raises(InvalidArgumentError, match=r"id.*not an object \(list\)"):
        table.range_partitions.define(tf.RangePartitions(on=["id"], bounds=[([deep], None)]))


@pytest.mark.parametrize("path", ["", "."])
def test_directory_that_is_not_a_table_is_not_added(
    table: tf.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgumentError, match=r"is not a partition|no Parquet files exist"):
        table.add_files([path])
    with pytest.raises(InvalidArgumentError, match=r"is a directory\. Nothing was changed\. Pass the files in it"):
        table.add_files([str(tmp_path)], partitions=[{}])


def test_add_files_unreadable_file_raises_storage_error(
    table: tf.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    file = tmp_path / "a.parquet"
    file.write_bytes(b"PAR1")
    monkeypatch.setattr("tableformat.operations.verbs.added_file.open_input", refused)
    with pytest.raises(StorageError, match="could not be read: PermissionError"):
        table.add_files([str(file)])


def test_hive_directory_values_are_text(catalog: tf.Catalog) -> None:
    table = catalog.create_table("db.parts", SCHEMA, key=["id"], partition_by=["id"])
    with pytest.raises(InvalidArgumentError, match=r"id is 5 \(int\), but directory values must be text"):
        table.add_files(["x.parquet"], partitions=[{"id": 5}])


@pytest.mark.parametrize(
    "use",
    [
        lambda table, old: table.rollback(snapshot_id=old),
        lambda table, old: table.set_current_snapshot(old),
        lambda table, old: table.create_tag("x", old),
        lambda table, old: table.create_branch("x", old),
    ],
)
def test_concurrently_expired_snapshot_is_not_found(
    catalog: tf.Catalog, table: tf.Table, use: Callable[[tf.Table, int], object]
) -> None:
    old = table.snapshot_id
    assert old is not None
    table.append(ROWS)
    stale = catalog.load_table("db.t")
    table.maintenance.expire_snapshots(older_than=dt.datetime(2100, 1, 1), retain_last=1)
    with pytest.raises(SnapshotNotFoundError, match=f"snapshot {old}: the table does not have this"):
        use(stale, old)
    assert stale.refresh().scan().count() == 2


@pytest.mark.parametrize(
    "use",
    [
        lambda table: table.refresh(),
        lambda table: table.append(ROWS),
        lambda table: table.create_tag("x"),
        lambda table: table.set_properties(a="b"),
        lambda table: table.maintenance.compact(),
        lambda table: table.maintenance.rewrite_manifests(),
        lambda table: table.maintenance.expire_snapshots(),
        lambda table: table.maintenance.run(),
    ],
)
def test_dropped_table_is_not_found(catalog: tf.Catalog, table: tf.Table, use: Callable[[tf.Table], object]) -> None:
    catalog.drop_table("db.t")
    with pytest.raises(TableNotFoundError):
        use(table)


def test_error_in_duplicate_search_keeps_its_class(table: tf.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(table.inspect.data_files()["file_path"][0].as_py().removeprefix("file://"))
    path.write_bytes(b"PAR1" + b"x" * path.stat().st_size)
    for on_duplicate in ("error", "ignore"):
        with pytest.raises(CorruptFileError, match="cannot be read"):
            table.append(ROWS, on_duplicate=on_duplicate)

    def interrupted(*_arguments: object) -> object:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(duplicates, "read_tables", interrupted)
    with pytest.raises(KeyboardInterrupt):
        table.append(ROWS, on_duplicate="error")


def test_filter_of_any_depth_is_parsed_or_rejected(table: tf.Table) -> None:
    deep: And | EqualTo = EqualTo("id", 1)
    for _ in range(3_000):
        deep = And(EqualTo("id", 5), deep)
    for where in ("CAST(" * 3_000 + "id" + " AS BIGINT)" * 3_000 + " = 1", deep):
        with pytest.raises(InvalidPredicateError):
            table.scan(where=where)


@pytest.mark.parametrize("partition", ["day(at)", "hour(at)", "month(day)", "year(day)"])
def test_first_and_last_years_have_partitions(catalog: tf.Catalog, partition: str) -> None:
    table = catalog.create_table("db.u", SCHEMA, key=["id"], partition_by=[partition])
    ends = pa.table({"id": [1, 2], "at": [dt.datetime.min, dt.datetime.max], "day": [dt.date.min, dt.date.max]})
    beyond = pa.table({"id": [3], "at": pa.array([2**62], pa.timestamp("us")), "day": [None]}, schema=SCHEMA)
    table.append(ends.cast(SCHEMA))
    table.append(beyond)
    assert table.scan(where="at >= TIMESTAMP '9999-12-31 23:59:59'").count() == 2
    assert table.scan(where="day >= TIMESTAMP '9999-12-31 23:59:59'").count() == 0
    assert table.scan(where="at < DATE '0001-01-02'").count() == 1
    assert table.inspect.manifests().num_rows == 2


@pytest.mark.parametrize("path", ["/proc/version/x", "/tmp/a\x00b", "/tmp/" + "x" * 5_000, "/proc/nothing/x"])
def test_invalid_directory_path_is_rejected(path: str) -> None:
    with pytest.raises((InvalidArgumentError, StorageError), match="cannot be"):
        tf.open_catalog(path)


def test_unreachable_catalog_is_not_corruption() -> None:
    with pytest.raises(StorageError, match="catalog 'prod' cannot be reached"):
        tf.open_catalog("prod", type="rest", uri="http://127.0.0.1:1/")


def test_vanished_mount_is_not_corruption(table: tf.Table) -> None:
    location = Path(table.location.removeprefix("file://"))
    away = location.with_name("elsewhere")
    location.rename(away)
    with pytest.raises(StorageError, match="is mounted"):
        table.scan().to_arrow()
    away.rename(location)
    assert table.scan().count() == 1
    for file in (location / "data").iterdir():
        file.unlink()
    with pytest.raises(CorruptFileError, match="does not exist"):
        table.scan().to_arrow()


def test_unreachable_store_is_not_corruption() -> None:
    options = {"s3.endpoint": "http://127.0.0.1:1", "s3.region": "x", "s3.access-key-id": "a"}
    with pytest.raises(StorageError, match="The file itself may be intact") as told:
        tf.read_metadata("s3://nowhere/t", **options, **{"s3.secret-access-key": "hush"})
    assert "hush" not in str(told.value)


@pytest.mark.parametrize(("package", "extra"), [("pandas", "tableformat[pandas]"), ("polars", "tableformat[polars]")])
def test_missing_package_error_names_the_extra(
    table: tf.Table, monkeypatch: pytest.MonkeyPatch, package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UnsupportedFeatureError, match=f"{package} is not installed") as told:
        getattr(table.scan(), f"to_{package}")()
    assert extra in str(told.value)


def test_options_with_other_names_get_a_suggestion(table: tf.Table) -> None:
    with pytest.raises(UnknownOptionError):
        table.overwrite(ROWS, overwrite_filter="id = 1")  # type: ignore[call-arg]
    with pytest.raises(UnknownOptionError):
        table.replace(ROWS, dryrun=True)  # type: ignore[call-arg]
    with pytest.raises(UnknownOptionError) as told:
        table.append(ROWS, mode="overwrite")  # type: ignore[call-arg]
    assert "dry_run" not in told.value.available


def test_table_directory_is_not_a_catalog(tmp_path: Path, table: tf.Table) -> None:
    """A new catalog in it would be empty; nothing is left there."""
    directory = Path(table.location.removeprefix("file://"))
    before = sorted(directory.iterdir())
    with pytest.raises(InvalidArgumentError, match=f"open its catalog, {tmp_path}/lake"):
        tf.open_catalog(directory)
    alone = directory.rename(tmp_path / "alone")
    with pytest.raises(InvalidArgumentError, match=r"call read_metadata\(\).*register_table"):
        tf.open_catalog(alone)
    assert [path.name for path in sorted(alone.iterdir())] == [path.name for path in before]
    with pytest.raises(InvalidArgumentError, match=f"is a file, but a catalog is a directory. Use {tmp_path}/lake"):
        tf.open_catalog(tmp_path / "lake" / "catalog.db")
