"""Spark predicates converted to filters that match exactly the same rows (SP-3)."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, IsNaN, Reference
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from spark_ext.service.ddl.check_constraints import check_properties
from spark_ext.service.wire.expressions import exact_filter, pruning_filter

SCHEMA = Schema(NestedField(1, "k", LongType(), required=False))
UNKNOWN: dict[str, Any] = {"literal": None, "type": "boolean"}


def test_null_literal_matches_no_row() -> None:
    """SP-93: it is unknown, and so is its negation."""
    for predicate in (UNKNOWN, {"operator": "NOT", "arguments": [UNKNOWN]}):
        assert exact_filter([predicate], SCHEMA) == AlwaysFalse()
        assert pruning_filter([predicate], SCHEMA) == AlwaysFalse()


def test_many_predicates_become_a_balanced_filter() -> None:
    """SP-100: what walks over a filter does so by recursion."""
    predicates = [comparison("<>", number) for number in range(2000)]
    for filter_ in (exact_filter(predicates, SCHEMA), pruning_filter(predicates, SCHEMA)):
        assert "NotEqualTo" in repr(filter_)


NUMBERS = (None, 1, 2, 3)


def comparison(operator: str, *literals: int | None, column: dict[str, Any] | None = None) -> dict[str, Any]:
    texts = [{"literal": None if each is None else str(each), "type": "long"} for each in literals]
    return {"operator": operator, "arguments": [column or {"column": ["k"]}, *texts]}


def of_row(predicate: dict[str, Any], value: int | None) -> bool | None:
    """Its truth in SQL; None is unknown."""
    if "literal" in predicate:
        return None
    operator, arguments = predicate["operator"], predicate["arguments"]
    if operator in ("AND", "OR"):
        decisive = operator == "OR"
        found = [of_row(each, value) for each in arguments]
        return decisive if decisive in found else None if None in found else not decisive
    if operator == "NOT":
        found_one = of_row(arguments[0], value)
        return None if found_one is None else not found_one
    literals = [None if each["literal"] is None else int(each["literal"]) for each in arguments[1:]]
    if operator == "<=>":
        return value == literals[0]
    if value is None or literals == [None] or (None in literals and value not in literals):
        return None
    return value in literals if operator == "IN" else {"=": value == literals[0], ">": value > literals[0]}[operator]


def random_predicate(pick: random.Random, depth: int) -> dict[str, Any]:
    if depth and pick.random() < 0.7:
        operator = pick.choice(("AND", "OR", "NOT"))
        count = 1 if operator == "NOT" else 2
        return {"operator": operator, "arguments": [random_predicate(pick, depth - 1) for _ in range(count)]}
    operator = pick.choice(("=", ">", "<=>", "IN", "IN", "null"))
    if operator == "null":
        return UNKNOWN
    count = pick.randint(1, 3) if operator == "IN" else 1
    return comparison(operator, *(pick.choice(NUMBERS) for _ in range(count)))


def test_null_literals_follow_sql_semantics(tmp_path: object) -> None:
    """SP-93: `k IN (1, NULL)` matches the rows with 1, its negation none; under every AND, OR and NOT."""
    catalog = new_lake(tmp_path)
    table = catalog.create_table("db.t", pa.schema([("k", pa.int64())]))
    table.append(pa.table({"k": pa.array(NUMBERS, pa.int64())}))
    pick = random.Random(0)
    for _ in range(400):
        predicate = random_predicate(pick, 3)
        found = exact_filter([predicate], table.metadata.schema())
        assert found is not None, predicate
        rows = table.scan(where=found).to_arrow()["k"].to_pylist()
        assert Counter(rows) == Counter(value for value in NUMBERS if of_row(predicate, value)), predicate


def test_transforms_and_nulls() -> None:
    """SP-93: a column that the table lacks has no filter, nor does a comparison with a null."""
    truncated = {"transform": "truncate", "arguments": [{"literal": "10", "type": "integer"}, {"column": ["k"]}]}
    assert exact_filter([comparison("=", None, column=truncated)], SCHEMA) == AlwaysFalse()
    some = comparison("IN", 10, None, column=truncated)
    assert exact_filter([some], SCHEMA) == exact_filter([comparison("IN", 10, column=truncated)], SCHEMA)
    assert exact_filter([{"operator": "NOT", "arguments": [some]}], SCHEMA) == (
        None if exact_filter([some], SCHEMA) is None else AlwaysFalse()
    )
    for nowhere in ({"column": ["nowhere"]}, {"unknown": "udf(k)"}):
        for literals in ([None], [1, None]):
            assert exact_filter([comparison("IN", *literals, column=nowhere)], SCHEMA) is None


def test_check_passes_if_unknown() -> None:
    """CK-1, SP-93: such a condition has no expression, because the expression would reject the rows for which it is
    unknown."""
    some, one = comparison("IN", 1, None), comparison("IN", 1, 2)
    for predicate, has_expression in (
        (some, False),
        ({"operator": "AND", "arguments": [one, some]}, False),
        (one, True),
    ):
        check = {"name": "c", "condition": "k IN (1, NULL)", "predicate": predicate}
        assert (len(check_properties([check], SCHEMA)) == 2) is has_expression, predicate


def test_true_and_false_literals() -> None:
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
    catalog = new_lake(tmp_path)
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
    assert exact_filter([nulls], whole.metadata.schema()) == IsNaN(Reference("x"))
