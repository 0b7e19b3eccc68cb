"""What predicates of Spark mean as filters that match exactly the same rows (SP-3)."""

from __future__ import annotations

from typing import Any

from pyiceberg.expressions import AlwaysFalse, AlwaysTrue
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from spark_ext.service.wire.expressions import exact_filter, pruning_filter

SCHEMA = Schema(NestedField(1, "k", LongType(), required=False))
UNKNOWN: dict[str, Any] = {"literal": None, "type": "boolean"}
POSITIVE: dict[str, Any] = {"operator": ">", "arguments": [{"column": ["k"]}, {"literal": "0", "type": "long"}]}


def test_a_null_has_no_exact_form() -> None:
    """SP-3: it is unknown, and so is its negation, which AlwaysFalse would turn into every row."""
    for predicate in (
        UNKNOWN,
        {"operator": "NOT", "arguments": [UNKNOWN]},
        {"operator": "OR", "arguments": [POSITIVE, UNKNOWN]},
        {"operator": "NOT", "arguments": [{"operator": "AND", "arguments": [POSITIVE, UNKNOWN]}]},
    ):
        assert exact_filter([predicate], SCHEMA) is None
    assert pruning_filter([{"operator": "NOT", "arguments": [UNKNOWN]}], SCHEMA) == AlwaysTrue()


def test_true_and_false_are_themselves() -> None:
    """SP-3."""
    for text, meaning in (("true", AlwaysTrue()), ("false", AlwaysFalse())):
        assert exact_filter([{"literal": text, "type": "boolean"}], SCHEMA) == meaning
