"""Adding files of other writers: facts that their footers state, and facts that only their rows show."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake
from pyiceberg.types import StringType

import tableformat as tf
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.errors import InvalidArgumentError

NAN = float("nan")


SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("p", pa.string()), ("f", pa.float64())])


NANOS = pa.timestamp("ns")


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., tf.Table]:
    catalog = new_lake(tmp_path / "lake")

    def make(*partition_by: str, schema: pa.Schema = SCHEMA, version: str = "3") -> tf.Table:
        properties = {"format-version": version}
        return catalog.create_table("db.t", schema, key=["id"], partition_by=partition_by, properties=properties)

    return make


def add(table: tf.Table, path: Path, columns: dict[str, Any], **options: Any) -> None:
    schema = pa.schema([field for field in table.schema if field.name in columns])
    pq.write_table(pa.table(columns, schema=schema), path, **options)
    table.add_files([str(path)])


SEVERAL: dict[str, tuple[str, dict[str, Any]]] = {
    "a null beside a value": ("p", {"id": [1, 2], "p": ["a", None]}),
    "a null beside a value of a transform": ("truncate(1, p)", {"id": [1, 2], "p": ["aa", None]}),
    "NaN beside a value": ("f", {"id": [1, 2], "f": [1.5, NAN]}),
    "NaN beside a null": ("f", {"id": [1, 2], "f": [NAN, None]}),
    "both zeros": ("f", {"id": [1, 2], "f": [0.0, -0.0]}),
    "two long texts that begin alike": ("p", {"id": [1, 2], "p": ["a" * 99 + "b", "a" * 99 + "c"]}),
    "two values": ("p", {"id": [1, 2], "p": ["a", "b"]}),
}


@pytest.mark.parametrize("has_statistics", [True, False])
@pytest.mark.parametrize("name", SEVERAL)
def test_file_with_rows_of_several_partitions_is_rejected(
    made: Callable[..., tf.Table], tmp_path: Path, name: str, has_statistics: bool
) -> None:
    """LK-10: when such files were added to one partition, filters returned rows that do not match and missed rows that
    do."""
    by, columns = SEVERAL[name]
    table = made(by)
    with pytest.raises(InvalidArgumentError, match=r"a\.parquet cannot be added.*more than one partition value"):
        add(table, tmp_path / "a.parquet", columns, write_statistics=has_statistics)
    assert table.refresh().scan().count() == 0


ONE: dict[str, tuple[str, dict[str, Any], str]] = {
    "nulls alone": ("p", {"id": [1, 2], "p": [None, None]}, "p IS NULL"),
    "a column that the file lacks": ("p", {"id": [1, 2]}, "p IS NULL"),
    "one value": ("p", {"id": [1, 2], "p": ["a" * 99] * 2}, f"p = '{'a' * 99}'"),
    "one value of a transform": ("truncate(1, p)", {"id": [1, 2], "p": ["ab", "ac"]}, "p LIKE 'a%'"),
    "NaN alone": ("f", {"id": [1, 2], "f": [NAN, NAN]}, "f > 1e308"),
    "a float": ("f", {"id": [1, 2], "f": [1.5, 1.5]}, "f = 1.5"),
}


@pytest.mark.parametrize("has_statistics", [True, False])
@pytest.mark.parametrize("name", ONE)
def test_file_without_statistics_is_added_to_its_partition(
    made: Callable[..., tf.Table], tmp_path: Path, name: str, has_statistics: bool
) -> None:
    """LK-10: without statistics they were in the partition of nulls."""
    by, columns, where = ONE[name]
    table = made(by)
    add(table, tmp_path / "a.parquet", columns, write_statistics=has_statistics)
    assert (table.scan(where).count(), table.scan(f"NOT ({where})").count()) == (2, 0)
    assert table.verify(deep=True).is_clean, table.verify(deep=True)


def test_missing_partition_column_uses_its_default(made: Callable[..., tf.Table], tmp_path: Path) -> None:
    table = made()
    with table.update_schema() as update:
        update.add_column("k", StringType(), default_value="d")
    with table.update_spec() as spec:
        spec.add_field("k", "identity", "k_of")
    add(table, tmp_path / "a.parquet", {"id": [1]})
    assert (table.scan("k = 'd'").count(), table.scan("k IS NULL").count()) == (1, 0)


TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "uuid": (pa.uuid(), b"k" * 16),
    "fixed": (pa.binary(3), b"abc"),
    "binary": (pa.binary(), b"ab"),
    "date": (pa.date32(), date(2026, 1, 31)),
    "time": (pa.time64("us"), time(1, 2, 3)),
    "timestamp": (pa.timestamp("us", "UTC"), datetime(2026, 1, 31, tzinfo=UTC)),
    "nanoseconds": (NANOS, 1_000_000_001),
    "decimal": (pa.decimal128(30, 2), Decimal("1.50")),
    "boolean": (pa.bool_(), True),
    "int": (pa.int32(), -5),
}


@pytest.mark.parametrize("name", TYPES)
def test_partition_value_of_each_type(made: Callable[..., tf.Table], tmp_path: Path, name: str) -> None:
    """LK-10: and an append has the same."""
    column_type, value = TYPES[name]
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("p", column_type)])
    table = made("p", schema=schema)
    values = pa.array([value], column_type.storage_type if name == "uuid" else column_type)
    rows = pa.table({"id": [1], "p": values.cast(column_type) if name == "uuid" else values}, schema=schema)
    table.append(rows)
    pq.write_table(rows, tmp_path / "a.parquet")
    table.add_files([str(tmp_path / "a.parquet")])
    first, second = table.inspect.files()["partition"].to_pylist()
    assert first == second
    assert table.inspect.partitions()["record_count"].to_pylist() == [2]
    assert table.verify(deep=True).is_clean, table.verify(deep=True)


@pytest.mark.parametrize("is_own", [True, False])
def test_field_ids_in_the_file_must_match_the_columns(
    made: Callable[..., tf.Table], tmp_path: Path, is_own: bool
) -> None:
    """LK-19: readers use the field ids. The column may have been renamed since, but it must be the same column."""
    table = made()
    ids = {"id": b"1", "p": b"2", "f": b"3"} if is_own else {"id": b"1", "p": b"3", "f": b"2"}
    fields = [field.with_metadata({b"PARQUET:field_id": ids[field.name]}) for field in SCHEMA.remove(2)]
    pq.write_table(pa.table({"id": [1], "p": ["x"]}, schema=pa.schema(fields)), tmp_path / "a.parquet")
    with table.update_schema() as update:
        update.rename_column("p", "q")
    if is_own:
        table.add_files([str(tmp_path / "a.parquet")])
        assert table.scan("q = 'x'").to_arrow().to_pylist() == [{"id": 1, "q": "x", "f": None}]
    else:
        with pytest.raises(InvalidArgumentError, match=r"a\.parquet cannot be added"):
            table.add_files([str(tmp_path / "a.parquet")])


def test_rejected_file_does_not_change_the_table(made: Callable[..., tf.Table], tmp_path: Path) -> None:
    """LK-19: the table used to get a name mapping, in a separate commit, for files that were never added."""
    table = made("p")
    before = table.iceberg.metadata_location
    with pytest.raises(InvalidArgumentError, match="does not exist"):
        table.add_files([str(tmp_path / "none.parquet")])
    with pytest.raises(InvalidArgumentError, match="cannot be added"):
        add(table, tmp_path / "f.parquet", {"id": [1, 2], "p": ["a", "b"]})
    assert table.refresh().iceberg.metadata_location == before
    add(table, tmp_path / "g.parquet", {"id": [1], "p": ["a"]})
    assert len(table.refresh().metadata.snapshots) == len(table.metadata.metadata_log) == 1
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "p": "a", "f": None}]


def test_column_renamed_while_adding_files_is_found(
    made: Callable[..., tf.Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LK-19: the name mapping has the names under which the files were checked."""
    table = made()
    commit, calls = EmbeddedCatalog.commit_table, []

    def after_a_rename(*arguments: Any) -> Any:
        monkeypatch.setattr(EmbeddedCatalog, "commit_table", commit)
        calls.append(1)
        assert table.catalog is not None
        with table.catalog.load_table("db.t").update_schema() as update:
            update.rename_column("p", "q")
        return commit(*arguments)

    monkeypatch.setattr(EmbeddedCatalog, "commit_table", after_a_rename)
    with pytest.raises(InvalidArgumentError, match="cannot be added"):
        add(table, tmp_path / "g.parquet", {"id": [1], "p": ["a"]})
    assert calls
    assert table.refresh().scan().count() == 0


@pytest.mark.parametrize("row_group_size", [1000, 4])
def test_file_with_false_sort_marker_is_rejected(
    made: Callable[..., tf.Table], tmp_path: Path, row_group_size: int
) -> None:
    """LK-10, RD-11: pyarrow copies the marker of a data file that it has read, regardless of changes to the rows. A
    range delete then used binary search on the rows, and missed rows that it should delete."""
    table = made()
    table.append(pa.table({"id": [*range(8)], "p": ["a", "b"] * 4}))
    (stored,) = table.inspect.data_files()["file_path"].to_pylist()
    rows = pq.read_table(stored.removeprefix("file://"))
    path = tmp_path / "again.parquet"
    pq.write_table(pa.concat_tables([rows.slice(4), rows.slice(0, 4)]), path, row_group_size=row_group_size)
    table.delete("id >= 0")
    with pytest.raises(InvalidArgumentError, match=r"sorted by id, but the row at position 4 sorts before"):
        table.add_files([str(path)])
    assert table.refresh().scan().count() == 0
    pq.write_table(pq.read_table(path).replace_schema_metadata(), path)
    table.add_files([str(path)])
    pq.write_table(rows, tmp_path / "sorted.parquet", row_group_size=row_group_size)
    table.add_files([str(tmp_path / "sorted.parquet")])
    table.delete_range(lower=(2,), upper=(5,))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == sorted([0, 1, 5, 6, 7] * 2)
    assert table.verify(deep=True).is_clean, table.verify(deep=True)


def test_sort_marker_on_text_columns_is_checked(made: Callable[..., tf.Table], tmp_path: Path) -> None:
    """LK-10: also if the column is read as codes, and if it follows another key column."""
    table = made()
    table.set_properties({"write.parquet.row-group-limit": "3"})
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("p", pa.string())])
    marker = {b"tableformat.sorted-by": b'{"field-ids": [1, 2], "encoding-version": 1}'}
    for name, texts in (("falls", ["b", "a", None]), ("rises", [None, "a", "b"])):
        rows = pa.table({"id": [1, 1, 1], "p": texts}, schema=schema.with_metadata(marker))
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    table.add_files([str(tmp_path / "rises.parquet")])
    with pytest.raises(InvalidArgumentError, match="sorted by id, p, but the row at position 1"):
        table.add_files([str(tmp_path / "falls.parquet")])


@pytest.fixture
def hive_directory(tmp_path: Path) -> Path:
    """in/country=DE/2.parquet, in/country=FR/1.parquet, in/country=FR/_SUCCESS"""
    root = tmp_path / "in"
    for number, country in ((1, "FR"), (2, "DE")):
        directory = root / f"country={country}"
        directory.mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), directory / f"{number}.parquet")
        (directory / "_SUCCESS").write_text("x")
    return root


@pytest.mark.parametrize("given", ["", "/country=*", "/**/*.parquet", "/country=[DF]?/?.parquet", "/country=*/[!3]*"])
def test_directories_and_patterns_stand_for_their_files(tmp_path: Path, hive_directory: Path, given: str) -> None:
    """LK-10"""
    columns = pa.schema([("id", pa.int64()), ("country", pa.string())])
    table = new_lake(tmp_path / "lake").create_table("db.orders", columns, partition_by=["country"])
    table.add_files([f"{hive_directory}{given}"])
    found = table.scan().to_arrow().sort_by("id").to_pydict()
    assert found == {"id": [1, 2], "country": ["FR", "DE"]}


def test_names_above_the_location_count_for_partition_columns_only(tmp_path: Path, hive_directory: Path) -> None:
    """LK-10"""
    columns = pa.schema([("id", pa.int64()), ("country", pa.string())])
    table = new_lake(tmp_path / "env=prod").create_table("db.orders", columns, partition_by=["country"])
    moved = hive_directory.rename(tmp_path / "env=prod" / "in")
    table.add_files([str(moved / "country=DE" / "2.parquet"), str(moved / "country=FR")])
    assert table.scan(where="country = 'FR'").to_arrow()["id"].to_pylist() == [1]


def test_a_directory_name_without_its_column_is_refused(tmp_path: Path, hive_directory: Path) -> None:
    """LK-10"""
    table = new_lake(tmp_path / "lake").create_table("db.orders", pa.schema([("id", pa.int64())]))
    with pytest.raises(InvalidArgumentError, match="country=DE in its directory name"):
        table.add_files([str(hive_directory)])
    (hive_directory / "2026").mkdir()
    pq.write_table(pa.table({"id": [7]}), hive_directory / "2026" / "7.parquet")
    with pytest.raises(InvalidArgumentError, match="'2026' is not a partition"):
        table.add_files([str(hive_directory)])
    table.add_files([str(hive_directory / "2*" / "*.parquet")])
    with pytest.raises(InvalidArgumentError, match="no Parquet files exist"):
        table.add_files([str(hive_directory / "*.csv")])
