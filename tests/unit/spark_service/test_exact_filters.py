"""What predicates of Spark mean as filters that match exactly the same rows (SP-3)."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from spark_ext.service.wire.expressions import exact_filter, pruning_filter
from tableformat import open_catalog

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


FLOATS = (None, math.nan, -math.inf, -0.0, 0.0, 1.5, math.inf)


def in_sql(operator: str, value: float | None, literals: list[float]) -> bool | None:
    """NaN equals itself and is above all others; None is unknown."""
    if operator == "<=>":
        return value is not None and math.isnan(value)
    if value is None:
        return None
    same = any((math.isnan(value) and math.isnan(each)) or value == each for each in literals)
    if operator in ("=", "IN"):
        return same
    if operator == "<>":
        return not same
    number = literals[0]
    below = not math.isnan(value) and (math.isnan(number) or value < number)
    return {"<": below, "<=": below or same, ">": not below and not same, ">=": not below}[operator]


@pytest.mark.parametrize("kind", ["double", "float"])
def test_comparisons_with_nan(tmp_path: object, kind: str) -> None:
    """SP-3: NaN was no literal of a filter; of nulls a comparison with it is unknown, negated as well."""
    catalog = open_catalog(str(tmp_path))
    catalog.create_namespace("db")
    column = pa.float64() if kind == "double" else pa.float32()
    schema = pa.schema([("x", column), ("n", pa.int64())])
    whole, parts = (
        catalog.create_table(f"db.{name}", schema, partition_by=by) for name, by in (("whole", []), ("parts", ["x"]))
    )
    for table in (whole, parts):
        table.append(pa.table({"x": list(FLOATS), "n": range(len(FLOATS))}, schema=schema))
    comparisons = [(sign, [math.nan]) for sign in ("=", "<>", "<", "<=", ">", ">=", "<=>")]
    for sign, literals in [
        *comparisons,
        ("IN", [math.nan]),
        ("IN", [1.5, math.nan]),
        ("IN", [0.0, math.nan, math.nan]),
    ]:
        texts = [{"literal": "NaN" if math.isnan(each) else str(each), "type": kind} for each in literals]
        predicate: dict[str, Any] = {"operator": sign, "arguments": [{"column": ["x"]}, *texts]}
        for negated in (False, True):
            asked = {"operator": "NOT", "arguments": [predicate]} if negated else predicate
            answers = [in_sql(sign, value, literals) for value in FLOATS]
            expected = [n for n, answer in enumerate(answers) if answer is (not negated)]
            for table in (whole, parts):
                found = exact_filter([asked], table.metadata.schema())
                assert found is not None
                assert sorted(table.scan(where=found).to_arrow()["n"].to_pylist()) == expected, (
                    sign,
                    literals,
                    negated,
                )
    nulls = {
        "operator": "IN",
        "arguments": [{"column": ["x"]}, {"literal": "NaN", "type": kind}, UNKNOWN | {"type": kind}],
    }
    assert exact_filter([nulls], whole.metadata.schema()) is None
