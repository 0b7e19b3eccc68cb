"""Table properties: which can be set, and the warnings when they are set."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.expressions import GreaterThan
from pyiceberg.table.update import SetPropertiesUpdate

import tableformat as tf
from tableformat.errors import (
    InvalidArgumentError,
    PropertyWithoutEffectWarning,
    UnknownOptionError,
    UnsupportedFeatureError,
)
from tableformat.iceberg_properties import ICEBERG_PROPERTIES, Effect, ValueKind
from tableformat.operations.history.references import commit_updates

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("price", pa.int64())])
ROWS = pa.table({"id": [1], "price": [5]}, schema=SCHEMA)
WHERE = GreaterThan("price", 0).model_dump_json()


@pytest.fixture
def catalog(tmp_path) -> tf.Catalog:
    return new_lake(f"{tmp_path}/lake")


@pytest.fixture
def table(catalog: tf.Catalog) -> tf.Table:
    return catalog.create_table("db.t", SCHEMA, key=["id"])


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("write.target-file-size-byte", "write.target-file-size-bytes"),
        ("write.parquet.compresion-codec", "write.parquet.compression-codec"),
        ("read.parquet.page-checksum-verify", "read.parquet.page-checksum-verification"),
        ("commit.retry.num-retrys", "commit.retry.num-retries"),
        ("tableformat.write.memory-byte", "tableformat.write.memory-bytes"),
    ],
)
def test_unknown_property_error_suggests_the_nearest(
    catalog: tf.Catalog, table: tf.Table, name: str, nearest: str
) -> None:
    """FM-25."""
    with pytest.raises(UnknownOptionError, match=f"Did you mean '{nearest}'"):
        table.set_properties({name: "1"})
    with pytest.raises(UnknownOptionError, match=f"Did you mean '{nearest}'"):
        catalog.create_table("db.u", SCHEMA, properties={name: "1"})
    assert name not in table.refresh().properties
    assert not catalog.table_exists("db.u")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.target-file-size-bytes", "512MB"),
        ("write.target-file-size-bytes", "0"),
        ("write.target-file-size-bytes", "²"),
        ("write.parquet.row-group-limit", "9" * 30),
        ("write.parquet.compression-codec", "zip"),
        ("write.parquet.compression-level", "high"),
        ("write.metadata.compression-codec", "zstd"),
        ("write.metadata.previous-versions-max", "many"),
        ("write.metadata.delete-after-commit.enabled", "yes"),
        ("write.distribution-mode", "hashed"),
        ("commit.retry.num-retries", "-1"),
        ("commit.manifest-merge.enabled", "1"),
        ("history.expire.max-snapshot-age-ms", "5 days"),
        ("gc.enabled", "off"),
        ("write.parquet.bloom-filter-fpp.column.id", "nan"),
        ("write.delete.mode", "merge"),
        ("tableformat.txn.retention-ms", "7d"),
        ("owner", "\ud800"),
    ],
)
def test_invalid_property_value_is_rejected_when_set(
    catalog: tf.Catalog, table: tf.Table, name: str, value: str
) -> None:
    """FM-25."""
    with pytest.raises(InvalidArgumentError, match=name):
        table.set_properties({name: value})
    with pytest.raises(InvalidArgumentError, match=name):
        catalog.create_table("db.u", SCHEMA, properties={name: value})
    assert table.refresh().properties.get(name) != value


def test_properties_without_effect_are_kept_with_one_warning(catalog: tf.Catalog, table: tf.Table) -> None:
    """FM-25."""
    idle = {"write.parquet.page-size-bytes": "65536", "write.upsert.enabled": "TRUE", "owner": "ann"}
    with pytest.warns(
        PropertyWithoutEffectWarning, match=r"write\.parquet\.page-size-bytes, write\.upsert\.enabled"
    ) as told:
        table.set_properties(idle)
    assert len(told) == 1
    assert told[0].filename == __file__
    with pytest.warns(PropertyWithoutEffectWarning) as told:
        other = catalog.create_table("db.u", SCHEMA, properties=idle)
    assert len(told) == 1
    assert table.properties.items() >= idle.items()
    assert other.properties.items() >= idle.items()


def test_value_equal_to_fixed_behaviour_does_not_warn(table: tf.Table) -> None:
    """FM-25."""
    done = {known.name: known.always for known in ICEBERG_PROPERTIES.values() if known.always is not None}
    table.set_properties(done)
    assert table.properties.items() >= done.items()


GOOD = {
    ValueKind.POSITIVE: "7",
    ValueKind.WHOLE: "0",
    ValueKind.INTEGER: "-1",
    ValueKind.NUMBER: "0.05",
    ValueKind.BOOLEAN: "True",
    ValueKind.TEXT: "x",
    ValueKind.METRICS_MODE: "Truncate(3)",
}


@pytest.mark.parametrize("name", ICEBERG_PROPERTIES)
def test_every_property_of_iceberg_can_be_set(
    table: tf.Table, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FM-25."""
    monkeypatch.chdir(tmp_path)  # Some are paths.
    known = ICEBERG_PROPERTIES[name]
    value = GOOD[known.values] if isinstance(known.values, ValueKind) else known.values[-1].upper()
    full = f"{name}price" if name.endswith(".") else name
    value = "pyiceberg.table.locations.SimpleLocationProvider" if "py-location" in name else value
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        table.set_properties({full: value})
    assert table.properties[full] == value
    # Since Python 3.13 there are also warnings about connections that the garbage collector closes.
    about_properties = [each for each in told if not issubclass(each.category, ResourceWarning)]
    assert len(about_properties) == (known.effect is Effect.NONE and value.lower() != known.always)


def test_foreign_properties_are_kept_and_ignored(table: tf.Table) -> None:
    """FM-25."""
    theirs = {
        "write.their.own": "x",
        "read.split.target-size": "big",
        "commit.unheard-of": "",
        "tableformat.from-the-future": "1",
    }
    commit_updates(table.iceberg, (), (SetPropertiesUpdate(updates=theirs),))
    table.append(ROWS)
    table.set_properties(owner="ann")
    table.maintenance.compact()
    assert table.properties.items() >= {**theirs, "owner": "ann"}.items()
    assert table.remove_properties("write.their.own").scan().count() == 1


def test_invalid_compression_level_is_rejected_on_write(table: tf.Table) -> None:
    table.set_properties({"write.parquet.compression-level": "99"})
    with pytest.raises(InvalidArgumentError, match="compression-level must be a level of zstd"):
        table.append(ROWS)
    table.set_properties({"write.parquet.compression-codec": "uncompressed"})
    assert table.append(ROWS).added_row_count == 1


def test_unimportable_location_provider_is_rejected_when_set(catalog: tf.Catalog, table: tf.Table) -> None:
    """FM-25."""
    for named in ("x", "no.such.module.Provider", "os.nothing"):
        given = {"write.py-location-provider.impl": named}
        with pytest.raises(InvalidArgumentError, match=r"must be a class that can be imported"):
            table.set_properties(given)
        with pytest.raises(InvalidArgumentError, match=r"must be a class that can be imported"):
            catalog.create_table("db.u", SCHEMA, properties=given)
    assert table.refresh().append(ROWS).added_row_count == 1


def test_version_1_tables_cannot_be_created(catalog: tf.Catalog) -> None:
    """FM-19."""
    with pytest.raises(UnsupportedFeatureError, match=r"tables of format-version 1 can be read but not created"):
        catalog.create_table("db.u", SCHEMA, properties={"format-version": "1"})
    assert not catalog.table_exists("db.u")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"tableformat.check.x": "price >"}, r"tableformat\.check-expression\.x .* is missing"),
        ({"tableformat.check-expression.x": WHERE}, r"tableformat\.check\.x .* is missing"),
        ({"tableformat.check.x": " ", "tableformat.check-expression.x": WHERE}, r"tableformat\.check\.x .* is missing"),
        ({"tableformat.check.x": "price > 0", "tableformat.check-expression.x": "price > 0"}, "is not JSON"),
        (
            {
                "tableformat.check.x": "cost > 0",
                "tableformat.check-expression.x": GreaterThan("cost", 0).model_dump_json(),
            },
            "unknown column 'cost'",
        ),
    ],
)
def test_constraint_that_blocks_all_writers_is_rejected_when_set(
    catalog: tf.Catalog, table: tf.Table, given: Mapping[str, str], told: str
) -> None:
    """CK-6."""
    with pytest.raises(InvalidArgumentError, match=f"CHECK constraint 'x' cannot be set .*{told}"):
        table.set_properties(given)
    with pytest.raises(InvalidArgumentError, match=told):
        catalog.create_table("db.u", SCHEMA, properties=given)
    assert table.append(ROWS).added_row_count == 1


def test_complete_constraint_properties_are_enforced(table: tf.Table) -> None:
    """CK-6."""
    table.set_properties({"tableformat.check.x": "price > 0", "tableformat.check-expression.x": WHERE})
    with pytest.raises(tf.errors.RowsRefusedError):
        table.append(pa.table({"id": [1], "price": [-1]}, schema=SCHEMA))


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("encryption.key-id", UnsupportedFeatureError, "does not encrypt files"),
        ("current-snapshot-id", InvalidArgumentError, "is reserved"),
        ("sort-order", InvalidArgumentError, "is reserved"),
    ],
)
def test_unenforceable_constraint_property_is_rejected(
    catalog: tf.Catalog, table: tf.Table, name: str, error: type[Exception], message: str
) -> None:
    """FM-25."""
    with pytest.raises(error, match=message):
        table.set_properties({name: "1"})
    with pytest.raises(error, match=message):
        catalog.create_table("db.u", SCHEMA, properties={name: "1"})
    assert not catalog.table_exists("db.u")
