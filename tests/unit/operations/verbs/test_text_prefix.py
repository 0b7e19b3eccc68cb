"""Blind deletes of a text prefix: `LIKE 'ab%'` and `starts_with` become an interval of strings."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tableformat as tf
from tableformat.filters.bound_filter import bind_filter
from tableformat.filters.predicate import parse_where
from tableformat.operations.row_lookup.key_condition import key_conditions
from tableformat.testing.table_rows import live_values

TEXTS = ["", "a", "ab", "ab\0", "abc", "ab\ud7ff", "ab\ue000", "ab\U0010ffff", "ac", "b", "ab\ud7ffx", "\U0010ffff"]


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("shop")
    schema = pa.schema([("name", pa.string()), ("id", pa.int64())])
    table = catalog.create_table("shop.items", schema, key=["name", "id"])
    table.append(pa.table({"name": pa.array(TEXTS), "id": range(len(TEXTS))}))
    return table


def deleted_kinds(table: tf.Table) -> set[str]:
    return set(table.inspect.delete_files()["kind"].to_pylist())


@pytest.mark.parametrize("prefix", ["ab", "ab\ud7ff", "ab\U0010ffff", "\U0010ffff", "zz", ""])
@pytest.mark.parametrize("where", ["name LIKE '{}%'", "starts_with(name, '{}')"])
def test_text_prefix_delete_writes_one_range_delete(table: tf.Table, prefix: str, where: str) -> None:
    table.delete(where.format(prefix), mode="range")
    assert deleted_kinds(table) == {"range"}
    assert live_values(table, "name") == live_values_without(prefix)


def live_values_without(prefix: str) -> list[str]:
    return sorted(text for text in TEXTS if not text.startswith(prefix))


@given(prefix=st.text(max_size=3), text=st.text(max_size=4))
def test_text_prefix_interval_contains_exactly_its_texts(prefix: str, text: str) -> None:
    from pyiceberg.expressions import StartsWith
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField, StringType

    schema = Schema(NestedField(1, "name", StringType(), required=False))
    conditions = key_conditions(bind_filter(parse_where(StartsWith("name", prefix), schema), schema))
    assert conditions is not None
    (condition,) = conditions
    interval = condition.interval
    assert interval is not None
    above = interval.lower is None or text >= interval.lower.value
    below = interval.upper is None or text < interval.upper.value
    assert (above and below) == text.startswith(prefix)
