"""Decimals with more digits than Python's default precision, in filters, statistics, Bloom filters and keys (FM-29)."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.types import DecimalType

import tableformat as tf
from tableformat.keys.exact_decimals import decimal_of, unscaled_of
from tableformat.range_partitions.cuts import value_from_json

WIDE = pa.decimal128(38, 3)
SCHEMA = pa.schema([pa.field("k", WIDE, nullable=False), ("v", WIDE)])
LOWEST, HIGHEST = (Decimal(f"{sign}{'9' * 35}.999") for sign in "-+")
VALUES = (
    LOWEST,
    Decimal("-418013653894335919568207727.477"),
    Decimal("-418013653894335919568207727.476"),
    Decimal("0.001"),
    Decimal("73111488130957277314552358074671.637"),
    Decimal("73111488130957277314552358074671.638"),
    HIGHEST,
)
LAYOUTS = {
    "row groups": {"write.parquet.row-group-limit": "2"},
    "Bloom filters": {f"write.parquet.bloom-filter-enabled.column.{name}": "true" for name in "kv"},
}


@pytest.fixture(params=LAYOUTS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tf.Table:
    """Each value as the key and, in reverse order, in another column."""
    catalog = new_lake(tmp_path / "lake")
    created = catalog.create_table("db.t", SCHEMA, key=["k"], properties=LAYOUTS[request.param])
    created.append(pa.table({"k": VALUES, "v": VALUES[::-1]}, SCHEMA))
    return created


def test_filters_on_wide_decimals_find_the_rows(table: tf.Table) -> None:
    """FM-29, FM-27; the second scan asks filters that the first one has read."""
    for value in (*VALUES, *VALUES):
        assert table.scan(where=f"v = {value}").to_arrow()["v"].to_pylist() == [value]
        assert table.get((value,)) is not None
        assert set(table.scan(where=f"k < {value}").to_arrow()["k"].to_pylist()) == {k for k in VALUES if k < value}
        assert table.scan(where=f"k >= {value} AND v IN ({VALUES[1]}, 7)").count() == (VALUES[-2] >= value)


def test_deletes_and_updates_on_wide_decimals(table: tf.Table) -> None:
    """FM-29."""
    table.delete(f"v = {VALUES[1]}", mode="scan")
    table.delete_range(lower=[VALUES[2]], upper=[VALUES[3]])
    table.delete_prefix({"k": VALUES[4]})
    table.update(f"k = {HIGHEST}", set={"v": f"{VALUES[1]}"})
    table.upsert(pa.table({"k": [VALUES[3]], "v": [VALUES[2]]}, SCHEMA))
    rows = table.refresh().scan().to_arrow()
    assert dict(zip(rows["k"].to_pylist(), rows["v"].to_pylist(), strict=True)) == {
        LOWEST: HIGHEST,
        VALUES[1]: VALUES[5],
        VALUES[3]: VALUES[2],
        HIGHEST: VALUES[1],
    }


def test_wide_decimal_conversion_is_exact() -> None:
    """FM-29."""
    for value in VALUES:
        assert decimal_of(unscaled_of(value, 3), 3) == value
        assert value_from_json(str(value), DecimalType(38, 3)) == value
    with pytest.raises(tf.TableFormatError):
        value_from_json("0.0001", DecimalType(38, 3))
