"""Tables that PyIceberg created: reading them without a catalog, and writing to them through PyIceberg's catalog."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import tableformat as tf
from tableformat.testing.table_rows import live_tuples


@pytest.fixture
def pyiceberg_catalog(tmp_path: Path) -> SqlCatalog:
    catalog = SqlCatalog("theirs", uri=f"sqlite:///{tmp_path}/theirs.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    yield catalog
    catalog.close()


def test_v1_table_with_nested_columns_is_read(pyiceberg_catalog: SqlCatalog) -> None:
    rows = pa.table({"a": [1, 2], "c": [{"x": 1, "y": ["q"]}, None]})
    theirs = pyiceberg_catalog.create_table("n.t", rows.schema, properties={"format-version": "1"})
    theirs.append(rows)
    ours = tf.read_metadata(theirs.metadata_location)
    assert rows.to_pylist() == ours.scan().to_arrow().to_pylist()
    assert ours.scan("c.x = 1", columns=["a"]).to_arrow().to_pylist() == [{"a": 1}]


def test_table_without_a_catalog_is_read_only(pyiceberg_catalog: SqlCatalog) -> None:
    theirs = pyiceberg_catalog.create_table("n.t", pa.schema([("a", pa.int64())]))
    ours = tf.read_metadata(theirs.metadata_location)
    with pytest.raises(tf.errors.UnsupportedFeatureError, match="read-only"):
        ours.append(pa.table({"a": [1]}))
    with pytest.raises(tf.errors.UnsupportedFeatureError, match="read-only"):
        ours.set_properties({"a": "b"})


def test_files_without_field_ids_are_read_by_name_mapping(pyiceberg_catalog: SqlCatalog, tmp_path: Path) -> None:
    """DA-6: equality and range deletes apply to files that were imported unchanged."""
    theirs = pyiceberg_catalog.create_table("n.t", pa.schema([("a", pa.int64()), ("b", pa.string())]))
    pq.write_table(pa.table({"b": ["k", "l", "m"], "a": [7, 8, 9]}), tmp_path / "plain.parquet")
    theirs.add_files([str(tmp_path / "plain.parquet")])
    ours = tf.Catalog(pyiceberg_catalog).load_table("n.t")
    ours.delete_rows(pa.table({"b": ["k"]}))
    ours.delete("a = 9", mode="range")
    assert ours.scan().to_arrow().to_pylist() == [{"a": 8, "b": "l"}]
    ours.maintenance.convert_deletes()
    assert pyiceberg_catalog.load_table("n.t").scan().to_arrow().to_pylist() == [{"a": 8, "b": "l"}]


def test_global_delete_adds_an_unpartitioned_spec(
    pyiceberg_catalog: SqlCatalog,
) -> None:
    """DA-3, FM-5, RD-3: an upsert by id also applies to yesterday's partition."""
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import LongType, NestedField, StringType

    schema = Schema(
        NestedField(1, "id", LongType(), required=True), NestedField(2, "day", StringType()), identifier_field_ids=[1]
    )
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))
    pyiceberg_catalog.create_table("n.t", schema, partition_spec=spec)
    ours = tf.Catalog(pyiceberg_catalog).load_table("n.t")
    assert ours.key == ("id",)
    ours.append(pa.table({"id": [1, 2], "day": ["mon", "mon"]}))
    ours.upsert(pa.table({"id": [1], "day": ["tue"]}))
    assert len(ours.iceberg.specs()) == 2
    assert live_tuples(ours) == [(1, "tue"), (2, "mon")]
    ours.maintenance.convert_deletes()
    plain = pyiceberg_catalog.load_table("n.t").scan().to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in plain) == [(1, "tue"), (2, "mon")]
