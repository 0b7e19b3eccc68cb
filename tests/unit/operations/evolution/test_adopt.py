"""Adding a key to tables of other writers, and adding files of other writers as data files."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidArgumentError,
    InvalidKeyError,
    RowsRefusedError,
    UnknownColumnError,
)
from tableformat.operations.evolution import adopt as adopt_module
from tableformat.operations.history.cherrypick import cherrypick
from tableformat.testing.table_rows import live_tuples

SMALL = '{"type": "lt", "term": "id", "value": 10}'
SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.string()), ("v", pa.float64())])


def rows(*ids: int | None) -> pa.Table:
    return pa.table({"id": list(ids), "at": ["x"] * len(ids), "v": [0.5] * len(ids)}, schema=SCHEMA)


def foreign(catalog: tf.Catalog, *, partition_by: tuple[str, ...] = (), **properties: str) -> Any:
    """PyIceberg's table, without a key, and without our unpartitioned spec."""
    table = catalog.iceberg.create_table("db.t", SCHEMA, properties=properties)
    if partition_by:
        with table.update_spec() as update:
            update.add_identity(*partition_by)
    return table


@pytest.mark.parametrize("version", ["2", "3"])
def test_adopt_adds_a_key_to_a_foreign_table(catalog: tf.Catalog, version: str) -> None:
    """LK-9: nothing is read, and everything that needs a key works then."""
    iceberg = foreign(catalog, partition_by=("at",))
    iceberg.append(rows(1, 2))
    if version == "3":
        catalog.load_table("db.t").upgrade()
    planned = catalog.adopt_table("db.t", key=["id"], dry_run=True)
    assert (planned.dry_run, planned.required_columns, planned.read_files_count) == (True, ("id",), 0)
    assert catalog.load_table("db.t").key == ()
    result = catalog.adopt_table("db.t", key=["id"])
    assert (result.key, result.format_version) == (("id",), int(version))
    assert result.health.data_file_count == 1
    table = catalog.load_table("db.t")
    assert table.metadata.schema().find_field("id").required
    assert not table.metadata.schema().find_field("at").required
    table.upsert(rows(2, 3), missing="null")
    table.delete_prefix({"id": 1})
    assert live_tuples(table) == [(2, "x", 0.5), (3, "x", 0.5)]
    assert table.scan(snapshot_id=table.metadata.snapshots[0].snapshot_id).count() == 2
    table.maintenance.convert_deletes()
    assert table.iceberg.scan().to_arrow().num_rows == 2
    assert catalog.adopt_table("db.t").required_columns == ()


def test_adopt_rejects_null_keys_on_any_branch(catalog: tf.Catalog) -> None:
    """LK-9: on any branch, but not nulls in deleted rows."""
    foreign(catalog).append(rows(1, None))
    table = catalog.load_table("db.t")
    with pytest.raises(InvalidKeyError):
        catalog.adopt_table("db.t", key=["id", "at"])
    table.create_branch("other")
    table.delete("id IS NULL", mode="scan")
    with pytest.raises(InvalidKeyError):
        catalog.adopt_table("db.t", key=["id"])
    catalog.load_table("db.t", branch="other").delete("id IS NULL", mode="scan")
    assert catalog.adopt_table("db.t", key=["id"]).read_files_count == 2
    assert catalog.load_table("db.t").key == ("id",)


@pytest.mark.parametrize("branch", ["main", "new"])
def test_commit_between_check_and_key_change_conflicts(
    catalog: tf.Catalog, monkeypatch: pytest.MonkeyPatch, branch: str
) -> None:
    """LK-9: the commit may have added a null, also to a branch that was created in the meantime."""
    iceberg = foreign(catalog)
    iceberg.append(rows(1))
    looked = adopt_module.find_nulls

    def look_and_lose(*arguments: Any) -> Any:
        found = looked(*arguments)
        if branch != "main":
            catalog.load_table("db.t").create_branch(branch)
        catalog.load_table("db.t", branch=branch).iceberg.append(rows(None), branch=branch)
        return found

    monkeypatch.setattr("tableformat.catalogs.adopt_table.find_nulls", look_and_lose)
    with pytest.raises(CommitConflictError):
        catalog.adopt_table("db.t", key=["id"])
    assert catalog.load_table("db.t").key == ()


def test_invalid_key_columns_are_rejected(catalog: tf.Catalog) -> None:
    """LK-9"""
    foreign(catalog).append(rows(1))
    with pytest.raises(InvalidKeyError):
        catalog.adopt_table("db.t")
    with pytest.raises(UnknownColumnError):
        catalog.adopt_table("db.t", key=["ids"])
    with pytest.raises(InvalidKeyError):
        catalog.adopt_table("db.t", key=["v"])


# -- files -------------------------------------------------------------------------------------------------------------


def keyed(catalog: tf.Catalog, **options: Any) -> tf.Table:
    return catalog.create_table("db.k", SCHEMA, key=["id"], **options)


@pytest.mark.parametrize("version", ["2", "3"])
def test_add_files_keeps_file_locations(catalog: tf.Catalog, tmp_path: Path, version: str) -> None:
    """LK-10"""
    table = keyed(catalog, partition_by=["at"], properties={"format-version": version})
    table.append(rows(1))
    table.delete_prefix({"id": 7})
    pq.write_table(rows(7, 8), tmp_path / "a.parquet")
    pq.write_table(rows(9), tmp_path / "b.parquet")
    paths = [str(tmp_path / "a.parquet"), f"file://{tmp_path}/b.parquet"]
    result = table.add_files(paths)
    assert (result.added_data_files_count, result.added_row_count) == (2, 3)
    assert [row[0] for row in live_tuples(table)] == [1, 7, 8, 9]
    with pytest.raises(AlreadyExistsError):
        table.add_files(paths[1:])
    table.delete("id = 9", mode="scan")
    table.delete_prefix({"id": 8})
    assert [row[0] for row in live_tuples(table)] == [1, 7]
    assert table.verify(deep=True).errors == ()
    if version == "3":
        assert table.scan(columns=["_row_id"]).to_arrow()["_row_id"].null_count == 0
    table.maintenance.convert_deletes()
    assert table.iceberg.scan().to_arrow().num_rows == 2
    table.maintenance.compact()
    assert all(os.path.exists(path.removeprefix("file://")) for path in paths)


JOBS: dict[str, Callable[[tf.Table], Any]] = {
    "compacted": lambda table: table.maintenance.compact(rewrite_all=True),
    "deleted": lambda table: table.overwrite(rows(7, 8)),
    "compacted, and expired behind it": lambda table: (
        table.maintenance.compact(rewrite_all=True),
        table.maintenance.expire_snapshots(older_than=2**42, retain_last=1),
    ),
}


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_add_files_rejects_file_whose_rows_were_rewritten(
    catalog: tf.Catalog, tmp_path: Path, job: Callable[[tf.Table], Any], is_known: bool
) -> None:
    """LK-10: otherwise its rows would be in the table twice, also if the handle does not know the commits in
    between."""
    stale = keyed(catalog)
    pq.write_table(rows(7, 8), tmp_path / "a.parquet")
    other = catalog.load_table("db.k")
    other.add_files([str(tmp_path / "a.parquet")])
    job(other)
    table = catalog.load_table("db.k") if is_known else stale
    with pytest.raises(AlreadyExistsError):
        table.add_files([str(tmp_path / "a.parquet")])
    assert [row[0] for row in live_tuples(catalog.load_table("db.k"))] == [7, 8]
    table.add_files([str(tmp_path / "a.parquet")], check_duplicate_files=False)
    assert [row[0] for row in live_tuples(table)] == [7, 7, 8, 8]


def test_fully_deleted_file_may_be_added_again(catalog: tf.Catalog, tmp_path: Path) -> None:
    """LK-10: the same as in Iceberg's add_files; not if some of its rows may be in other files."""
    table = keyed(catalog)
    pq.write_table(rows(7, 8), tmp_path / "a.parquet")
    table.add_files([str(tmp_path / "a.parquet")])
    table.delete("id >= 7", mode="scan")
    table.add_files([str(tmp_path / "a.parquet")])
    assert [row[0] for row in live_tuples(table)] == [7, 8]
    table.maintenance.compact(rewrite_all=True)
    with pytest.raises(AlreadyExistsError):
        table.add_files([str(tmp_path / "a.parquet")])


@pytest.mark.parametrize("spelt", ["file://{}", "file:{}", "file://localhost{}", "file:///{}", "{}/../link/a.parquet"])
def test_file_spellings_are_recognized_as_one_file(catalog: tf.Catalog, tmp_path: Path, spelt: str) -> None:
    """LK-10"""
    table = keyed(catalog)
    (tmp_path / "files").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "files")
    path = tmp_path / "files" / "a.parquet"
    pq.write_table(rows(7), path)
    again = spelt.format(path.parent if ".." in spelt else path)
    with pytest.raises(InvalidArgumentError, match="contains a file twice"):
        table.add_files([str(path), again])
    table.add_files([str(path)])
    with pytest.raises(AlreadyExistsError):
        table.add_files([again])
    assert table.scan().count() == 1


def test_add_files_rejects_rows_that_append_rejects(catalog: tf.Catalog, tmp_path: Path) -> None:
    """LK-10: nulls in the key, constraints, range partitions."""
    table = keyed(catalog)
    table.set_properties({"tableformat.check.small": "id < 10", "tableformat.check-expression.small": SMALL})
    path = str(tmp_path / "a.parquet")
    for bad in (rows(1, None), rows(1, 20)):
        pq.write_table(bad, path)
        with pytest.raises(RowsRefusedError):
            table.add_files([path])
    ranges = catalog.create_table(
        "db.r", SCHEMA, key=["id"], range_partitions=tf.RangePartitions(on=["id"], bounds=[(0, 10)])
    )
    pq.write_table(rows(1, 11), path)
    with pytest.raises(RowsRefusedError):
        ranges.add_files([path])
    pq.write_table(rows(1, 2), path)
    assert ranges.add_files([path]).added_row_count == 2
    assert table.scan().count() == 0


@pytest.mark.parametrize("footer", [{"org.apache.spark.legacyDateTime": ""}, {"org.apache.spark.version": "2.4.8"}])
def test_dates_of_the_julian_calendar_are_refused(catalog: tf.Catalog, tmp_path: Path, footer: dict[str, str]) -> None:
    """LK-10: they became other days. Later ones are the same by both calendars."""
    times = pa.timestamp("us", "UTC")
    schema = pa.schema([("day", pa.date32()), ("s", pa.struct([("ts", times)]))])
    table = catalog.create_table("db.days", schema)
    path = str(tmp_path / "a.parquet")
    old, new = datetime(1899, 12, 31, 23, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC)
    for day, at, is_refused in (
        (date(1582, 10, 15), new, False),
        (date(1582, 10, 14), new, True),
        (date(1582, 10, 15), old, True),
        (None, None, False),
    ):
        written = pa.table({"day": [day], "s": [{"ts": at}]}, schema=schema)
        pq.write_table(written, path)
        assert table.add_files([path], check_duplicate_files=False).added_row_count == 1
        pq.write_table(written.replace_schema_metadata(footer), path)
        if is_refused:
            with pytest.raises(InvalidArgumentError, match="Julian calendar"):
                table.add_files([path], check_duplicate_files=False)
        else:
            table.add_files([path], check_duplicate_files=False)


def test_add_files_rejects_unsupported_types(catalog: tf.Catalog, tmp_path: Path) -> None:
    """LK-10: errors of PyIceberg used to be raised for nanoseconds, which pandas writes, and for INT96, and errors of
    Python for days before the year 1."""
    table = catalog.create_table("db.t", pa.schema([("ts", pa.timestamp("us")), ("day", pa.date32())]))
    moment = pa.array([datetime(2024, 1, 1)], pa.timestamp("ns"))
    for values, options in (
        ({"ts": moment}, {}),
        ({"ts": moment}, {"use_deprecated_int96_timestamps": True}),
        ({"day": pa.array([-800_000], pa.int32()).cast(pa.date32())}, {}),
    ):
        pq.write_table(pa.table(values), tmp_path / "a.parquet", **options)
        with pytest.raises(InvalidArgumentError, match=r"a\.parquet cannot be added"):
            table.add_files([str(tmp_path / "a.parquet")])
    assert table.scan().count() == 0


def test_add_files_error_names_the_reason(catalog: tf.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LK-10"""
    table = keyed(catalog, partition_by=["at"])
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"id": ["x"], "at": ["y"], "v": [1.0]}), "types.parquet")
    pq.write_table(pa.table({"id": [1, 2], "at": ["x", "y"], "v": [1.0, 1.0]}), "two.parquet")
    pq.write_table(pa.table({"id": [1], "other": ["x"]}), "columns.parquet")
    Path("text.parquet").write_text("no Parquet")
    for name in ("types.parquet", "two.parquet", "columns.parquet", "nowhere.parquet"):
        with pytest.raises(InvalidArgumentError, match=name.replace(".", r"\.")):
            table.add_files([name])
    with pytest.raises(tf.errors.CorruptFileError):
        table.add_files(["text.parquet"])
    with pytest.raises(InvalidArgumentError, match="list"):
        table.add_files("two.parquet")
    with pytest.raises(InvalidArgumentError, match="twice"):
        table.add_files(["two.parquet", "two.parquet"])
    pq.write_table(rows(1), "good.parquet")
    assert table.add_files(["good.parquet"], application_id="loader", batch_id=1).added_row_count == 1
    assert table.add_files(["good.parquet"], application_id="loader", batch_id=1).already_applied
    monkeypatch.chdir("/")
    assert table.scan().count() == 1, "a relative path is made whole"


def test_add_files_reads_hive_partition_columns(catalog: tf.Catalog, tmp_path: Path) -> None:
    """LK-10: also a key column, and a delete that uses it."""
    schema = pa.schema(
        {"id": pa.int64(), "day": pa.date32(), "n": pa.int32(), "at": pa.timestamp("us", "UTC"), "v": pa.string()}
    )  # fmt: skip
    table = catalog.create_table("db.d", schema, key=["day", "id"], partition_by=["day", "n", "at"])
    paths = [str(tmp_path / f"{number}.parquet") for number in range(3)]
    for number, path in enumerate(paths):
        pq.write_table(pa.table({"id": [number, number + 10], "v": ["x", "y"]}), path)
    moment = "2026-01-01 01:00:00"
    said = [
        {"day": "2026-01-31", "n": "5", "at": f"{moment}+01:00"},
        {"day": "2026-02-01", "n": None, "at": None},
        {"day": "2026-02-01", "n": "-1", "at": moment},
    ]
    table.add_files(paths, partitions=said)
    first = datetime(2026, 1, 1, tzinfo=UTC)
    found = table.scan(where="day = DATE '2026-01-31' OR n = -1").to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], str(row["day"]), row["n"], row["at"]) for row in found] == [
        (0, "2026-01-31", 5, first),
        (2, "2026-02-01", -1, first.replace(hour=1)),
        (10, "2026-01-31", 5, first),
        (12, "2026-02-01", -1, first.replace(hour=1)),
    ]
    table.delete_range(lower=(date(2026, 2, 1), 11), on=["day", "id"])
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 10]
    assert table.verify(deep=True).errors == ()
    for bad, message in (
        ([{"v": "x"}], "partitioned by day, n, at"),
        ([{"day": "31.1.2026"}], "not a valid value for the column 'day'"),
        ([], "0 values for 1 files"),
        ([{"day": None}], "day"),
    ):
        with pytest.raises((InvalidArgumentError, RowsRefusedError), match=message):
            table.add_files(paths[:1], partitions=bad, check_duplicate_files=False)
    path = str(tmp_path / "twice.parquet")
    pq.write_table(pa.table({"id": [1], "day": pa.array([20485], pa.date32())}), path)
    with pytest.raises(InvalidArgumentError, match="its directory name has"):
        table.add_files([path], partitions=said[:1])


class TestRowsOfBefore:
    """LK-9: a required column has no nulls, also if rows are added that were written while it could be null."""

    SCHEMA = pa.schema([("id", pa.int64()), pa.field("n", pa.int32(), nullable=False)])

    def rows(self, ids: list[int | None]) -> pa.Table:
        return pa.table({"id": ids, "n": [5] * len(ids)}, schema=self.SCHEMA)

    def made(self, tmp_path: Path, version: int = 2, *, has_ranges: bool = False) -> tuple[tf.Catalog, tf.Table]:
        catalog = new_lake(tmp_path / "lake")
        ranges = tf.RangePartitions(on=["n"], bounds=[(0, 20)], step=10) if has_ranges else None
        properties = {"format-version": str(version)}
        table = catalog.create_table("db.t", self.SCHEMA, range_partitions=ranges, properties=properties)
        table.append(self.rows([1]))
        return catalog, table

    def check(self, catalog: tf.Catalog, ids: list[int]) -> None:
        table = catalog.load_table("db.t")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ids
        assert table.key == ("id",)
        assert table.verify(deep=True).is_clean

    @pytest.mark.parametrize("version", [2, 3])
    def test_stale_handle_cannot_append_null_keys(self, tmp_path: Path, version: int) -> None:
        catalog, behind = self.made(tmp_path, version)
        catalog.adopt_table("db.t", key=["id"])
        with pytest.raises(RowsRefusedError):
            behind.append(self.rows([2, None]))
        self.check(catalog, [1])

    def test_open_transaction_cannot_append_null_keys(self, tmp_path: Path) -> None:
        catalog, table = self.made(tmp_path)

        def transaction() -> None:
            with table.transaction() as tx:
                tx.append(self.rows([7, None]))
                catalog.adopt_table("db.t", key=["id"])

        with pytest.raises(CommitConflictError):
            transaction()
        self.check(catalog, [1])

    def test_staged_null_keys_conflict(self, tmp_path: Path) -> None:
        catalog, table = self.made(tmp_path)
        write = table.new_write()
        fitting, unfit = write.write(self.rows([2])), write.write(self.rows([3, None]))
        catalog.adopt_table("db.t", key=["id"])
        table.refresh()
        with pytest.raises(CommitConflictError):
            table.commit(write, [fitting, unfit])
        table.commit(write, [fitting])
        self.check(catalog, [1, 2])

    @pytest.mark.parametrize("deletes", [False, True])
    def test_retired_null_keys_cannot_be_restored(self, tmp_path: Path, deletes: bool) -> None:
        catalog, table = self.made(tmp_path, has_ranges=True)
        table.append(self.rows([2, None]))
        if deletes:
            table.delete("id IS NULL", mode="scan")
        tag = table.range_partitions.retire(0, 10).tag
        assert tag is not None
        catalog.adopt_table("db.t", key=["id"])
        table.refresh()
        if deletes:
            table.range_partitions.restore(tag)
        else:
            with pytest.raises(InvalidArgumentError, match=r"have no value in 'id', which db\.t now requires"):
                table.range_partitions.restore(tag)
        self.check(catalog, [1, 2] if deletes else [])

    @pytest.mark.parametrize("is_behind", [True, False])
    def test_cherry_pick_of_null_keys_is_rejected(self, tmp_path: Path, is_behind: bool) -> None:
        catalog, table = self.made(tmp_path)
        staged = []
        for ids in ([2], [3, None]):
            table.refresh().create_branch("staging")
            staged.append(catalog.load_table("db.t", branch="staging").append(self.rows(ids)).snapshot_id)
            table.refresh().drop_branch("staging")
        catalog.adopt_table("db.t", key=["id"])
        if is_behind:
            table.refresh().append(self.rows([4]))
        fitting, unfit = staged
        assert fitting is not None
        assert unfit is not None
        table.refresh()
        with pytest.raises(InvalidArgumentError, match=r"have no value in 'id', which db\.t now requires"):
            cherrypick(table.iceberg, "main", unfit)
        cherrypick(table.iceberg, "main", fitting)
        self.check(catalog, [1, 2, 4] if is_behind else [1, 2])
