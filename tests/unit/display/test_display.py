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
from tableformat.display.grid import Column, grid
from tableformat.display.history import change_text
from tableformat.display.results import commit_text
from tableformat.display.rows import Rows
from tableformat.display.summary import partition_texts
from tableformat.errors import InvalidArgumentError
from tableformat.operations.drafts.result import CommitResult


def shown(renderable: RenderableType, width: int) -> list[str]:
    stream = io.StringIO()
    at = console(stream)
    at.width = width
    at.print(renderable)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("byte_count", "told"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.0 KB"), (999_949, "999.9 KB"), (999_950, "1.0 MB"), (5 * 10**15, "5.0 PB")],
)
def test_size_never_has_four_digits_before_the_point(byte_count: int, told: str) -> None:
    assert text.size(byte_count) == told


def test_a_path_breaks_before_the_name_of_its_file_and_what_is_indented_stays_so() -> None:
    why = "data/day=1/00000-12b38279.parquet\n  rows of data/day=1/00000-12b38279.parquet\n  three words, then four"
    told = grid([Column("n", is_number=True), Column("why", wraps=True)], [["1", why]])
    assert shown(told, 28)[2:] == [
        "1  data/day=1/",
        "   00000-12b38279.parquet",
        "     rows of data/day=1/",
        "     00000-12b38279.parquet",
        "     three words, then four",
    ]
    assert shown(told, 60)[2:] == [
        "1  data/day=1/00000-12b38279.parquet",
        "     rows of data/day=1/00000-12b38279.parquet",
        "     three words, then four",
    ]


def test_counts_and_durations() -> None:
    assert text.count(1234567) == "1,234,567"
    assert [text.counted(number, "row") for number in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]
    assert [text.seconds(duration) for duration in (0.0123, 1.25, 1234)] == ["12 ms", "1.2 s", "1,234.0 s"]


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


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"already_applied": True}, "This batch was already committed; nothing was changed."),
        ({}, "Nothing to change; no snapshot was created."),
        (
            {
                "attempts": 3,
                "added_row_count": 2,
                "deleted_row_count": 1,
                "written_bytes": 1500,
                "duration_seconds": 0.5,
            },
            "Snapshot 7: 2 rows added, 1 row deleted, 1.5 KB written in 500 ms after 3 attempts.",
        ),
        (
            {"attempts": 1, "deleted_row_count": None, "added_delete_files_count": 1, "written_bytes": 900},
            "Snapshot 7: 1 delete file added, no row read, 900 B written in 0 ms.",
        ),
    ],
)
def test_commit_in_a_sentence(changes: dict[str, Any], told: str) -> None:
    assert commit_text(CommitResult(**{"snapshot_id": 7, "sequence_number": 1, **changes})) == told


class TestRows:
    TABLE = pa.table({"id": pa.array([1, 20], pa.int64()), "name": ["[b]x", None], "long": ["y" * 30, "z"]})

    def test_numbers_are_right_aligned_and_markup_is_text(self) -> None:
        assert shown(Rows.of(self.TABLE), 80) == [
            "   id  name    long",
            "int64  string  string",
            "─" * 45,
            "    1  [b]x    yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
            "   20  NULL    z",
        ]

    def test_middle_columns_go_first(self) -> None:
        wide = pa.table({f"c{number}": ["v" * 8] for number in range(6)})
        lines = shown(Rows.of(wide), 40)
        assert lines[0].split() == ["c0", "c1", "c5"]
        assert lines[3].split() == ["v" * 8, "v" * 8, "...", "v" * 8]
        assert lines[4].startswith("3 of 6 columns fit the screen")

    def test_long_values_are_cut_when_they_do_not_fit(self) -> None:
        lines = shown(Rows.of(pa.table({"a": ["v" * 100], "b": ["w"]})), 60)
        assert lines[3].split() == ["v" * 39 + "…", "w"]

    def test_nothing_is_cut_where_there_is_room(self) -> None:
        assert shown(Rows.of(pa.table({"a": ["v" * 100], "b": ["w"]})), 200)[3].split() == ["v" * 100, "w"]

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
