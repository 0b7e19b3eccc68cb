"""Numbers, sentences and tables for people."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from tableformat.display import text
from tableformat.display.files import path_that_ends
from tableformat.errors import InvalidArgumentError


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
def test_cell_text_has_no_line_breaks(value: Any, told: str) -> None:
    assert text.cell(value) == told


class TestPathThatEnds:
    PATHS = (
        "s3://b/t/data/p=1/00000-a.parquet",
        "s3://b/t/data/p=2/00000-a.parquet",
        "s3://b/t/data/p=2/00001-b.parquet",
    )

    def test_path_is_found_by_full_path_or_unique_suffix(self) -> None:
        assert path_that_ends(self.PATHS[0], self.PATHS) == self.PATHS[0]
        assert path_that_ends("p=1/00000-a.parquet", self.PATHS) == self.PATHS[0]
        assert path_that_ends("00001-b.parquet", self.PATHS) == self.PATHS[2]

    def test_ambiguous_or_partial_path_suffix_is_rejected(self) -> None:
        with pytest.raises(InvalidArgumentError, match="is the end of 2 data files"):
            path_that_ends("00000-a.parquet", self.PATHS)
        with pytest.raises(InvalidArgumentError, match=r"Did you mean '00001-b.parquet'\?"):
            path_that_ends("1-b.parquet", self.PATHS)
