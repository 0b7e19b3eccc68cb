"""Changes that `update_schema()` and `update_spec()` reject, and that a rejected change leaves the table unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import IntegerType, StringType

from tableformat import RangePartitions, Table, open_catalog
from tableformat.errors import CommitConflictError, InvalidArgumentError, TableNotFoundError

SCHEMA = pa.schema(
    [("id", pa.int64()), ("p", pa.int64()), ("name", pa.string()), ("place", pa.struct([("city", pa.string())]))]
)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    with new_lake(tmp_path / "lake") as catalog:
        yield catalog.create_table("db.t", SCHEMA, key=["id"], partition_by=["bucket(4, p)"])


SCHEMA_REFUSALS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a key column dropped": (lambda update: update.delete_column("id"), r"belongs to the key.*set_key\(\)"),
    "a partition source dropped": (lambda update: update.delete_column("p"), r"remove_field\('p_bucket'\)"),
    "no such column dropped": (lambda update: update.delete_column("nope"), "nope"),
    "a key column optional": (lambda update: update.make_column_optional("id"), "cannot be optional"),
    "a key column not required": (lambda update: update.update_column("id", required=False), "cannot be optional"),
    "identifier fields": (lambda update: update.set_identifier_fields("name"), r"set_key\(\['name'\]\)"),
    "no identifier fields": (lambda update: update.set_identifier_fields(), "set_key"),
    "a narrower type": (lambda update: update.update_column("id", field_type=IntegerType()), "long -> int"),
    "a narrower type of Arrow": (lambda update: update.update_column("id", pa.int32()), "long -> int"),
    "a name in use": (lambda update: update.add_column("name", StringType()), "exists"),
    "no such column moved": (lambda update: update.move_first("nope"), "nope"),
    "a number as a name": (lambda update: update.rename_column("name", 5), "must be text"),
    "text as a type": (lambda update: update.add_column("more", "string"), "IcebergType"),
    "another type": (lambda update: update.union_by_name(pa.schema([("p", pa.string())])), "long -> string"),
}


SPEC_REFUSALS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no such column": (lambda update: update.add_field("nope", "identity", "x"), "nope"),
    "no transform of the type": (lambda update: update.add_field("name", "day", "x"), "day cannot transform string"),
    "no transform": (lambda update: update.add_field("name", "shuffle", "x"), "cannot transform"),
    "no buckets": (lambda update: update.add_field("id", BucketTransform(0), "x"), "above 0"),
    "a width of zero": (lambda update: update.add_field("name", "truncate[0]", "x"), "above 0"),
    "a field that is there": (lambda update: update.add_field("p", "bucket[4]", "x"), "Duplicate"),
    "no transform at all": (lambda update: update.add_field("name", 5, "x"), "a transform or its text"),
    "no such field removed": (lambda update: update.remove_field("nope"), "nope"),
    "no such field renamed": (lambda update: update.rename_field("nope", "x"), "nope"),
}


@pytest.mark.parametrize("name", SCHEMA_REFUSALS)
def test_invalid_schema_change_is_rejected_and_changes_nothing(table: Table, name: str) -> None:
    call, told = SCHEMA_REFUSALS[name]
    before = table.iceberg.metadata_location
    with pytest.raises(InvalidArgumentError, match=told), table.update_schema() as update:
        call(update)
    assert table.refresh().iceberg.metadata_location == before
    assert table.key == ("id",)


@pytest.mark.parametrize("name", SPEC_REFUSALS)
def test_invalid_spec_change_is_rejected_and_changes_nothing(table: Table, name: str) -> None:
    call, told = SPEC_REFUSALS[name]
    before = table.iceberg.metadata_location
    with pytest.raises(InvalidArgumentError, match=told), table.update_spec() as update:
        call(update)
    assert table.refresh().iceberg.metadata_location == before


RANGE_REFUSALS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "dropped": (lambda update: update.delete_column("day"), "cannot be dropped"),
    "optional": (lambda update: update.make_column_optional("day"), "cannot be optional"),
    "not required": (lambda update: update.update_column("day", required=False), "cannot be optional"),
}


@pytest.mark.parametrize("name", RANGE_REFUSALS)
def test_range_column_cannot_be_dropped_or_optional(table: Table, name: str, tmp_path: Path) -> None:
    """RP-2: also one outside of the key; without range partitions it is a column like others."""
    call, told = RANGE_REFUSALS[name]
    bounds = RangePartitions(on=["day"], bounds=[(0, 10), (20, 30)])
    schema = pa.schema([("id", pa.int64()), pa.field("day", pa.int64(), nullable=False), ("v", pa.string())])
    with open_catalog(str(tmp_path / "lake")) as catalog:
        ranged = catalog.create_table("db.r", schema, key=["id"], range_partitions=bounds)
        before = ranged.iceberg.metadata_location
        with (
            pytest.raises(
                InvalidArgumentError,
                match=rf"'day' {told}.*are defined by day\. Existing ranges: \[0, 10\), \[20, 30\)",
            ),
            ranged.update_schema() as update,
        ):
            call(update)
        assert ranged.refresh().iceberg.metadata_location == before
        with ranged.update_schema() as update:
            update.rename_column("day", "number").delete_column("v")
        assert ranged.refresh().range_partitions.on == ("number",)
        ranged.remove_properties("tableformat.range-partitions")
        with ranged.update_schema() as update:
            update.delete_column("number")
        assert ranged.refresh().view.schema.column_names == ["id"]


def test_column_may_be_dropped_after_its_partition_field(table: Table) -> None:
    with table.update_spec() as spec:
        spec.remove_field("p_bucket")
    with table.update_schema() as update:
        update.delete_column("p").rename_column("place.city", "town").make_column_optional("name")
    assert table.schema.names == ["id", "name", "place"]
    assert table.schema.field("place").type == pa.struct([("town", pa.string())])


def test_concurrent_schema_changes_conflict(table: Table) -> None:
    other = table.catalog.load_table("db.t")
    with table.update_schema() as update:
        update.add_column("a", IntegerType())
    with pytest.raises(CommitConflictError), other.update_schema() as update:
        update.add_column("b", IntegerType())
    assert other.refresh().schema.names[-1] == "a"


def test_new_column_does_not_reuse_a_concurrently_dropped_id(table: Table) -> None:
    """CP-50: the current schema is the same again, and the values of the other column are still in files."""
    other = table.catalog.load_table("db.t")
    with table.update_schema() as update:
        update.add_column("a", IntegerType())
    table.append({"id": 1, "a": 5})
    with table.update_schema() as update:
        update.delete_column("a")
    with pytest.raises(CommitConflictError), other.update_schema() as update:
        update.add_column("b", IntegerType())
    with other.refresh().update_schema() as update:
        update.add_column("b", IntegerType())
    assert other.scan(columns=["id", "b"]).to_arrow().to_pylist() == [{"id": 1, "b": None}]


@pytest.mark.parametrize("move", [lambda table: table.refresh(), lambda table: table.append({"id": 2, "p": 2})])
def test_change_started_before_handle_refresh_uses_new_ids(table: Table, move: Callable[[Table], Any]) -> None:
    """CP-50: new columns and partition fields have their own ids."""
    other = table.catalog.load_table("db.t")
    column = table.update_schema().add_column("b", IntegerType())
    with other.update_schema() as theirs:
        theirs.add_column("a", IntegerType())
    other.append({"id": 1, "p": 1, "a": 5})
    with other.update_schema() as theirs:
        theirs.delete_column("a")
    move(table)
    with pytest.raises(CommitConflictError):
        column.commit()
    assert table.refresh().schema.names == SCHEMA.names
    field = table.update_spec().add_field("name", "identity", "by_name")
    with other.refresh().update_spec() as theirs:
        theirs.add_field("id", "identity", "by_id")
    move(table)
    with pytest.raises(CommitConflictError):
        field.commit()
    assert [field.name for field in table.refresh().metadata.spec().fields] == ["p_bucket", "by_id"]


def test_new_schema_does_not_reuse_a_concurrent_schema_id(table: Table) -> None:
    """CP-50: no column is new, and the current schema is the same again."""
    other = table.catalog.load_table("db.t")
    for old, new in (("name", "title"), ("title", "name")):
        with table.update_schema() as update:
            update.rename_column(old, new)
    with pytest.raises(CommitConflictError), other.update_schema() as update:
        update.rename_column("name", "label")
    with other.refresh().update_schema() as update:
        update.rename_column("name", "label")
    assert other.schema.names == ["id", "p", "label", "place"]
    assert len({schema.schema_id for schema in other.metadata.schemas}) == len(other.metadata.schemas)


def test_new_key_does_not_reuse_a_concurrent_schema_id(tmp_path: Path) -> None:
    """CP-50: the table could not be read by its key any more."""
    with new_lake(tmp_path / "lake") as catalog:
        required = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in ("a", "b")])
        table = catalog.create_table("db.t", required, key=["a"])
        other = catalog.load_table("db.t")
        for old, new in (("b", "c"), ("c", "b")):
            with table.update_schema() as update:
                update.rename_column(old, new)
        with pytest.raises(CommitConflictError):
            other.set_key(["a", "b"])
        assert catalog.load_table("db.t").key == ("a",)
        assert other.refresh().set_key(["a", "b"]).key == ("a", "b")


def test_change_of_dropped_table_raises_not_found(table: Table) -> None:
    table.catalog.drop_table("db.t")
    with pytest.raises(TableNotFoundError), table.update_schema() as update:
        update.add_column("a", IntegerType())
    with pytest.raises(TableNotFoundError), table.update_spec() as spec:
        spec.add_field("name", "identity")


def test_invalid_name_mapping_is_rejected(table: Table) -> None:
    """FM-23: when it is set, and, as other writers may leave it behind, when it is needed."""
    table.append(pa.table({"id": [1], "p": [1], "name": ["a"], "place": [{"city": "x"}]}, schema=table.schema))
    name = "schema.name-mapping.default"
    with pytest.raises(InvalidArgumentError, match=r"schema\.name-mapping\.default must be a name mapping in JSON"):
        table.set_properties({name: "["})
    with table.iceberg.transaction() as transaction:
        transaction.set_properties({name: "["})
    table.refresh()
    for call in (lambda: table.scan().to_arrow(), table.update_schema):
        with pytest.raises(InvalidArgumentError, match=r"schema\.name-mapping\.default must be a name mapping in JSON"):
            call()
