"""Filters as text."""

from __future__ import annotations

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, LongType, NestedField, StringType, TimestampType

from tableformat.filters.filter_text import filter_text
from tableformat.filters.predicate import parse_where

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "s", StringType(), required=False),
    NestedField(3, "day", DateType(), required=False),
    NestedField(4, "at", TimestampType(), required=False),
)


@pytest.mark.parametrize(
    "text",
    [
        "id = 1",
        "id >= 1 AND s <> 'it''s'",
        "id = 1 OR (id = 2 AND s IS NULL)",
        "day < DATE '2024-02-29'",
        "at = TIMESTAMP '2024-02-29 12:00:00.500000'",
        "id IN (1, 2, 3)",
        "TRUE",
    ],
)
def test_filter_text_round_trips(text: str) -> None:
    assert filter_text(parse_where(text, SCHEMA)) == text
