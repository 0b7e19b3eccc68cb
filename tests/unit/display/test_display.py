"""Numbers, sentences and tables for people."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestampType
from rich.console import RenderableType

from tableformat.cli.output import console
from tableformat.display import text
from tableformat.display.files import path_that_ends
from tableformat.display.history import change_text
from tableformat.display.rows import Rows
from tableformat.display.summary import partition_texts
from tableformat.errors import InvalidArgumentError


def shown(renderable: RenderableType, width: int) -> list[str]:
    stream = io.StringIO()
    at = console(stream)
    at.width = width
    at.print(renderable)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "NULL"),
        ("a\nb\x1b[31m", "a\\nb\\x1b[31m"),
        ("naïve 日本", "naïve 日本"),
        (b"\x00\xff", "0x00ff"),
        (True, "true"),
        (Decimal("1E+2"), "100"),
        (dt.datetime(2026, 1, 31, 12), "2026-01-31 12:00:00"),
        ({"a": [1, None]}, "{a: [1, NULL]}"),
    ],
)
def test_cell_stays_on_its_line(value: Any, told: str) -> None:
    assert text.cell(value) == told


def test_relative_path_below_any_spelling_of_the_table_directory() -> None:
    assert text.relative("file:/lake/t/data/a.parquet", "file:///lake/t/") == "data/a.parquet"
    assert text.relative("s3://b/other/a.parquet", "s3://b/t") == "s3://b/other/a.parquet"
    assert text.relative("file:///lake/t2/a.parquet", "file:///lake/t") == "file:///lake/t2/a.parquet"


def test_partitions_as_they_are_given_to_create_table() -> None:
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "ts", TimestampType()), NestedField(3, "s", StringType())
    )
    spec = PartitionSpec(
        PartitionField(1, 1000, BucketTransform(16), "b"),
        PartitionField(2, 1001, DayTransform(), "d"),
        PartitionField(3, 1002, IdentityTransform(), "s"),
        PartitionField(3, 1003, TruncateTransform(4), "s4"),
    )
    assert partition_texts(spec, schema) == ["bucket(16, id)", "day(ts)", "s", "truncate(4, s)"]


def test_change_counts_range_deletes_once() -> None:
    """Other readers count a range delete as an equality delete (RD-6); the display counts it once."""
    both = {"added-equality-delete-files": "3", "added-range-delete-files": "2", "added-records": "1"}
    assert change_text(both) == "+1 row, +1 equality delete, +2 range deletes"
    assert change_text({"removed-delete-files": "1", "deleted-records": "5"}) == "-5 rows, -1 delete"
    counted = {"added-position-delete-files": "1", "tableformat.deleted-rows": "2"}
    assert change_text(counted) == "-2 rows, +1 position delete"


class TestRows:
    TABLE = pa.table({"id": pa.array([1, 20], pa.int64()), "name": ["[b]x", None], "long": ["y" * 30, "z"]})

    def test_no_rows_and_no_columns(self) -> None:
        assert shown(Rows.of(self.TABLE.slice(0, 0)), 80)[:2] == ["   id  name    long", "int64  string  string"]
        assert shown(Rows.of(pa.table({})), 80) == [""]


class TestPathThatEnds:
    PATHS = (
        "s3://b/t/data/p=1/00000-a.parquet",
        "s3://b/t/data/p=2/00000-a.parquet",
        "s3://b/t/data/p=2/00001-b.parquet",
    )

    def test_whole_path_and_unique_end(self) -> None:
        assert path_that_ends(self.PATHS[0], self.PATHS) == self.PATHS[0]
        assert path_that_ends("p=1/00000-a.parquet", self.PATHS) == self.PATHS[0]
        assert path_that_ends("00001-b.parquet", self.PATHS) == self.PATHS[2]

    def test_ambiguous_end_and_half_a_name(self) -> None:
        with pytest.raises(InvalidArgumentError, match="is the end of 2 data files"):
            path_that_ends("00000-a.parquet", self.PATHS)
        with pytest.raises(InvalidArgumentError, match=r"Did you mean '00001-b.parquet'\?"):
            path_that_ends("1-b.parquet", self.PATHS)
