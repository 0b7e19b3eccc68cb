"""A warning about columns for which Parquet's Java library writes no Bloom filter."""

from __future__ import annotations

import logging

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StructType

from spark_ext.service.writes.bloom_filters import bloom_filters
from tableformat.parquet.bloom_filters.filter_options import ENABLED, filter_options


def test_names_with_dots_are_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """FM-27: `s`.`a.b` is another column than `s`.`a`.`b`."""
    inner = StructType(NestedField(3, "a.b", LongType()), NestedField(4, "c", LongType()))
    schema = Schema(NestedField(1, "n.m", LongType()), NestedField(2, "s", inner))
    options = filter_options({f"{ENABLED}{column}": "true" for column in ("n.m", "s.a.b", "s.c")}, schema)
    with caplog.at_level(logging.WARNING):
        given = [bloom_filters(options) for _ in range(2)]
    assert [[each["column"] for each in one] for one in given] == [["s.c"], ["s.c"]]
    assert [record.getMessage().split(" gets ")[0] for record in caplog.records] == ["column `n.m`", "column `s`.`a.b`"]
