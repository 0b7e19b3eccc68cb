"""The column that a statement of the SQL extension refers to."""

from __future__ import annotations

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StructType

from spark_ext.service.statements.columns import column_name
from tableformat.errors import InvalidArgumentError, UnknownColumnError

_INSIDE = StructType(NestedField(4, "x", LongType()), NestedField(5, "X", LongType()))
ALIKE = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "Id", LongType()),
    NestedField(3, "st", _INSIDE),
    NestedField(6, "Other", LongType()),
)


@pytest.mark.parametrize("path", [["id"], ["Id"], ["ID"], ["st", "x"], ["ST", "X"]])
def test_similar_names_are_ambiguous_if_case_insensitive(path: list[str]) -> None:
    """SP-63."""
    with pytest.raises(InvalidArgumentError, match=r"SET spark\.sql\.caseSensitive = true"):
        column_name(ALIKE, path, case_sensitive=False)


@pytest.mark.parametrize("path", [["id"], ["Id"], ["st", "x"], ["st", "X"]])
def test_similar_names_are_distinct_if_case_sensitive(path: list[str]) -> None:
    """SP-63."""
    assert column_name(ALIKE, path, case_sensitive=True) == ".".join(path)


def test_other_columns_resolve_unambiguously() -> None:
    assert column_name(ALIKE, ["OTHER"], case_sensitive=False) == "Other"
    assert column_name(ALIKE, ["ST"], case_sensitive=False) == "st"
    with pytest.raises(UnknownColumnError):
        column_name(ALIKE, ["OTHER"], case_sensitive=True)
