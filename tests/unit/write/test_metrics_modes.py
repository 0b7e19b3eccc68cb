"""FM-8: column metrics in manifest entries, as the table's properties request them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake
from pyiceberg.schema import Schema
from pyiceberg.types import ListType, LongType, NestedField, StringType, StructType

import tableformat as tf
from tableformat.errors import InvalidArgumentError
from tableformat.parquet.metrics_modes import metrics_modes

LONG = "x" * 100
COLUMNS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("text", pa.string()),
        ("price", pa.float64()),
        ("place", pa.struct([("town", pa.string())])),
    ]
)
METRICS = "write.metadata.metrics."


@pytest.fixture
def catalog(tmp_path: Path) -> tf.Catalog:
    return new_lake(f"{tmp_path}/lake")


def written(catalog: tf.Catalog, properties: Mapping[str, str], **options: Any) -> dict[str, tuple[Any, ...]]:
    """For each column of a file with one row: whether there are counts, and the lengths of the bounds."""
    table = catalog.create_table("db.t", COLUMNS, key=["id"], properties=dict(properties), **options)
    table.append(
        pa.table({"id": [LONG], "text": [LONG], "price": [1.5], "place": [{"town": LONG}]}, schema=COLUMNS),
    )
    (file,) = table.refresh().inspect.files().to_pylist()
    nulls, lower, upper = (dict(file[f"{name}"]) for name in ("null_value_counts", "lower_bounds", "upper_bounds"))
    assert nulls.keys() == dict(file["value_counts"]).keys()
    assert set(dict(file["nan_value_counts"] or ())) == nulls.keys() & {3}
    assert dict(file["column_sizes"]).keys() == {1, 2, 3, 5}
    names = {1: "id", 2: "text", 3: "price", 5: "town"}
    return {
        name: (field_id in nulls, *(len(bounds.get(field_id, b"")) for bounds in (lower, upper)))
        for field_id, name in names.items()
    }


def test_metrics_mode_determines_entry_statistics(catalog: tf.Catalog) -> None:
    """FM-8: modes for one column, and the default for all others; the key keeps the bounds that deletes use."""
    modes = {"default": "none", "column.text": "Truncate(3)", "column.price": "counts", "column.place.town": "full"}
    assert written(catalog, {METRICS + name: mode for name, mode in modes.items()}) == {
        "id": (True, 64, 64),
        "text": (True, 3, 3),
        "price": (True, 0, 0),
        "town": (True, 100, 100),
    }


def test_default_mode_keeps_full_key_bounds(catalog: tf.Catalog) -> None:
    """FM-8."""
    assert written(catalog, {METRICS + "default": "truncate(16)"}) == {
        "id": (True, 64, 64),
        "text": (True, 16, 16),
        "price": (True, 8, 8),
        "town": (True, 16, 16),
    }


def test_key_bounds_are_dropped_only_by_explicit_column_mode(catalog: tf.Catalog) -> None:
    """FM-8: equality and range deletes still apply to the rows."""
    assert written(catalog, {METRICS + "column.id": "none"})["id"] == (False, 0, 0)
    table = catalog.load_table("db.t")
    table.delete(f"id = '{LONG}'")
    assert table.refresh().scan().to_arrow().num_rows == 0


def test_only_the_first_columns_have_metrics_in_wide_tables(catalog: tf.Catalog) -> None:
    """FM-8: counted as Iceberg does, columns inside of structs last; the key keeps its bounds."""
    metrics = written(catalog, {METRICS + "max-inferred-column-defaults": "2"})
    assert [name for name, (has_counts, *_) in metrics.items() if has_counts] == ["id", "text"]


def test_columns_are_counted_in_iceberg_order() -> None:
    """FM-8: a struct's own columns before those deeper down; elements of lists count too."""
    deep = StructType(
        NestedField(11, "b", StringType()), NestedField(12, "c", StructType(NestedField(13, "d", LongType())))
    )
    schema = Schema(
        NestedField(1, "s", deep),
        NestedField(2, "l", ListType(21, LongType(), element_required=False)),
        NestedField(3, "e", LongType()),
        NestedField(4, "f", LongType()),
    )
    for most, without in enumerate(({3, 4, 11, 13}, {4, 11, 13}, {11, 13}, {13}, set(), set())):
        modes = metrics_modes({METRICS + "max-inferred-column-defaults": str(most)}, schema, (), ())
        assert modes.keys() == without
        everything = {METRICS + "max-inferred-column-defaults": str(most), METRICS + "default": "truncate(16)"}
        assert not metrics_modes(everything, schema, (), ())


@pytest.mark.parametrize("mode", ["", "some", "truncate", "truncate(0)", "truncate(x)", "truncate(-1)"])
def test_invalid_metrics_mode_is_rejected(catalog: tf.Catalog, mode: str) -> None:
    """FM-25."""
    for name in ("default", "column.id"):
        with pytest.raises(InvalidArgumentError, match=r"truncate\(n\)"):
            catalog.create_table("db.t", COLUMNS, key=["id"], properties={METRICS + name: mode})
    table = catalog.create_table("db.t", COLUMNS, key=["id"])
    with pytest.raises(InvalidArgumentError, match=r"truncate\(n\)"):
        table.set_properties({METRICS + "default": mode})


def test_range_partition_columns_keep_full_bounds(catalog: tf.Catalog) -> None:
    """RP-7: regardless of whether the partitions or the property are set first."""
    ranges = tf.RangePartitions(on=["id"], bounds=[("a", "z")])
    assert written(catalog, {METRICS + "default": "none"}, range_partitions=ranges)["id"] == (True, 100, 100)
    table = catalog.load_table("db.t")
    with pytest.raises(InvalidArgumentError, match="range partitions use the bounds of 'id'"):
        table.set_properties({METRICS + "column.id": "truncate(16)"})
    table.set_properties({METRICS + "column.id": "full"})
    other = catalog.create_table("db.u", COLUMNS, key=["id"], properties={METRICS + "column.id": "none"})
    with pytest.raises(InvalidArgumentError, match="range partitions use the bounds of 'id'"):
        other.range_partitions.define(ranges)


@pytest.mark.parametrize("mode", ["none", "counts", "truncate(1)", "full"])
def test_added_files_are_partitioned_correctly_in_any_metrics_mode(
    catalog: tf.Catalog, tmp_path: Path, mode: str
) -> None:
    """LK-10, FM-8: the partition is read off bounds that the table does not keep; it was null, and filters took the
    rows for absent."""
    table = catalog.create_table(
        "db.t",
        pa.schema([("n", pa.int64()), ("day", pa.string())]),
        partition_by=["day"],
        properties={METRICS + "default": mode},
    )
    file = tmp_path / "there.parquet"
    pq.write_table(pa.table({"n": [1, 2], "day": [LONG, LONG]}), file)
    table.add_files([str(file)])
    table.refresh()
    assert table.scan(where=f"day = '{LONG}' AND n = 2").to_arrow().num_rows == 1
    (entry,) = table.inspect.files().to_pylist()
    assert bool(entry["lower_bounds"]) == (mode not in ("none", "counts"))
    assert bool(entry["value_counts"]) == (mode != "none")
