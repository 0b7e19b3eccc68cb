"""Added files whose Arrow schema other readers cannot combine with other files."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException
from pyiceberg.table import StaticTable

import tableformat as tf
from tableformat.maintenance.health.health import Finding

NAME = "added-arrow-types"
PLAIN = pa.array(["new", "paid", "new"])
MOMENTS = pa.array([0, 1, 2], pa.timestamp("us", "UTC"))
WORDS = pa.array([["new"], ["paid"], None])


def orders(directory: Path, kind: pa.DataType, name: str = "orders", **options: str) -> tf.Table:
    catalog = tf.open_catalog(directory / "lake")
    catalog.create_namespace("shop", exist_ok=True)
    schema = pa.schema([pa.field("order", pa.int64(), nullable=False), ("status", kind)])
    return catalog.create_table(f"shop.{name}", schema, key=["order"], properties=options)


def added(directory: Path, table: tf.Table, states: pa.Array, name: str = "from_pandas", first: int = 1) -> None:
    numbers = pa.array(range(first, first + len(states)), pa.int64())
    pq.write_table(pa.table({"order": numbers, "status": states}), directory / f"{name}.parquet")
    table.add_files([str(directory / f"{name}.parquet")])


def found(table: tf.Table) -> dict[str, Finding]:
    return {finding.name: finding for finding in table.refresh().maintenance.health().findings}


def read_by_pyiceberg(table: tf.Table) -> pa.Table:
    return StaticTable.from_metadata(table.refresh().iceberg.metadata_location).scan().to_arrow().sort_by("order")


@pytest.mark.parametrize(
    ("states", "kind"),
    [
        (PLAIN.dictionary_encode(), pa.string()),
        (PLAIN.cast(pa.large_string()).dictionary_encode(), pa.string()),
        (PLAIN.cast(pa.string_view()), pa.string()),
        (PLAIN.cast(pa.binary()).cast(pa.binary_view()), pa.binary()),
        (pa.array(WORDS.to_pylist(), pa.list_view(pa.string())), WORDS.type),
        (pa.array(WORDS.to_pylist(), pa.list_(pa.dictionary(pa.int32(), pa.string()))), WORDS.type),
        (MOMENTS.cast(pa.timestamp("us", "Europe/Berlin")), MOMENTS.type),
        (pa.array([1, 2, 3]).cast(pa.decimal256(22, 0)), pa.decimal128(22, 0)),
        (pa.ExtensionArray.from_storage(pa.json_(), PLAIN), pa.string()),
    ],
    ids=lambda each: str(each.type)[:20] if isinstance(each, pa.Array) else None,
)
def test_incompatible_arrow_types_are_a_finding_until_rewritten(
    tmp_path: Path, states: pa.Array, kind: pa.DataType
) -> None:
    """MT-102"""
    table = orders(tmp_path, kind)
    added(tmp_path, table, states)
    table.upsert(table.scan(where='"order" = 1').to_arrow())
    expected = table.refresh().scan().to_arrow().sort_by("order")
    assert "status" in found(table)[NAME].what
    # Pending equality deletes stop PyIceberg, too.
    table.maintenance.convert_deletes()
    with pytest.raises((pa.ArrowException, UnsupportedPyArrowTypeException)):
        read_by_pyiceberg(table)
    table.refresh().maintenance.compact(rewrite_all=True)
    assert NAME not in found(table)
    assert read_by_pyiceberg(table).to_pylist() == expected.to_pylist()


def test_lists_of_fixed_size_that_polars_does_not_read_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MT-102"""
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    kind = pa.list_(pa.int64(), 1)
    table = orders(tmp_path, kind)
    added(tmp_path, table, pa.array([[1], [2], [3]], kind))
    assert "status" in found(table)[NAME].what
    with pytest.raises(pl.exceptions.SchemaError):
        pl.scan_iceberg(table.iceberg).collect()


@pytest.mark.parametrize(
    ("states", "kind"),
    [
        (PLAIN, pa.string()),
        (PLAIN.cast(pa.large_string()), pa.string()),
        (WORDS.cast(pa.large_list(pa.large_string())), WORDS.type),
        (pa.array([0, 1, 2], pa.timestamp("ms", "UTC")), MOMENTS.type),
        (pa.array([1, 2, 1], pa.int16()), pa.int32()),
        (pa.array([1, 2, 1], pa.int32()).dictionary_encode(), pa.int32()),
    ],
    ids=lambda each: str(each.type)[:20] if isinstance(each, pa.Array) else None,
)
def test_compatible_arrow_types_are_not_a_finding(tmp_path: Path, states: pa.Array, kind: pa.DataType) -> None:
    table = orders(tmp_path, kind)
    added(tmp_path, table, states)
    table.append(table.scan(where='"order" = 1').to_arrow())
    assert NAME not in found(table)
    assert read_by_pyiceberg(table).num_rows == 4


def test_added_file_in_table_directory_is_found(tmp_path: Path) -> None:
    table = orders(tmp_path, pa.string())
    data = Path(table.location.removeprefix("file://"), "data")
    data.mkdir(parents=True, exist_ok=True)
    added(data, table, PLAIN.dictionary_encode())
    assert found(table)[NAME].what.startswith("1 added data file")


def test_missing_file_is_not_a_health_finding(tmp_path: Path) -> None:
    table = orders(tmp_path, pa.string())
    added(tmp_path, table, PLAIN.dictionary_encode())
    added(tmp_path, table, PLAIN.dictionary_encode(), name="gone", first=10)
    (tmp_path / "gone.parquet").unlink()
    assert found(table)[NAME].what.startswith("1 added data file ")
    assert not table.maintenance.verify().is_clean
