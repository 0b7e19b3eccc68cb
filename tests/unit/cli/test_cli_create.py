"""The command line: `create`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_lake import Lake, make_lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return make_lake(tmp_path / "lake")


def test_a_table_is_created_with_range_partitions(lake: Lake) -> None:
    """RP-23: ranges as text, each in a separate option."""
    columns = ("year int required", "amount decimal(10, 2)", "place name string")
    run = lake.run(
        *("create", "db.sales", *columns, "--key", "year, place name", "--range-on", "year"),
        *("--range-partition", "[2020, 2022)", "--range-partition", "[2030, 2031]", "--range-option", "step=1"),
        *("--property", "write.target-file-size-bytes=1000000"),
    )
    assert (run.status, run.stderr) == (0, "")
    assert run.stdout.startswith("Created db.sales at ")
    with lake.table("db.sales") as table:
        assert [str(field.field_type) for field in table.metadata.schema().fields] == [
            "int",
            "decimal(10, 2)",
            "string",
        ]
        assert table.key == ("year", "place name")
        listed = table.range_partitions.list()["partition"].to_pylist()
        assert listed == ["[2020, 2021)", "[2021, 2022)", "[2030, 2031)", "VALUE = 2031"]
        assert [str(field.transform) for field in table.metadata.spec().fields] == ["identity"]


def test_key_is_repeated_or_separated_by_commas(lake: Lake) -> None:
    """The same as the option of `adopt`: if both forms are given, the first one would be ignored."""
    columns = ("a long", "b long", "c, d long")
    assert lake.json("create", "db.one", *columns, "--key", "a", "--key", "b")["key"] == ["a", "b"]
    assert lake.json("create", "db.two", *columns, "--key", 'b,"c, d"')["key"] == ["b", "c, d"]


def test_columns_are_read_from_a_file(lake: Lake, tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("at", pa.timestamp("us", "UTC"))])
    pq.write_table(schema.empty_table(), tmp_path / "some.parquet")
    made = lake.json("create", "db.copy", "--like", tmp_path / "some.parquet", "--partition-by", "day(at)")
    assert (made["table"], made["columns"], made["key"]) == ("db.copy", ["id long", "at timestamptz"], [])
    with lake.table("db.copy") as table:
        assert [field.name for field in table.metadata.spec().fields] == ["at_day"]


def test_lake_and_namespace_are_created_on_request(lake: Lake, tmp_path: Path) -> None:
    """A user who has only the command line starts with nothing."""
    elsewhere = Lake(tmp_path / "new")
    assert "`tableformat create --parents`" in elsewhere.error("create", "db.t", "id long")["message"]
    assert not (tmp_path / "new").exists()
    elsewhere.json("create", "db.t", "id long", "--parents")
    elsewhere.json("create", "db.u", "id long", "--parents")
    assert elsewhere.run("ls").stdout == "db.t\ndb.u\n"
    assert "no namespace" in lake.error("create", "nowhere.t", "id long")["message"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("id lnog",), "is not a column"),
        (("id",), "is not a column"),
        (("id long", "--range-partition", "[1, 2)"), "must list the range columns"),
        (("id long required", "--range-on", "id", "--range-option", "stpe=1"), "step"),
    ],
)
def test_invalid_create_arguments_are_rejected(lake: Lake, arguments: tuple[str, ...], message: str) -> None:
    assert message in lake.error("create", "db.t", *arguments)["message"]
    assert lake.run("create", "db.t").status == 2
