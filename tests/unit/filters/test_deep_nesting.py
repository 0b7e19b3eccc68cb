"""Conditions and expressions that are nested deeper than Python's recursion limit raise an error of this library."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from long_forms import every
from new_lakes import new_lake
from pyiceberg.expressions import And, BooleanExpression, EqualTo, Not, NotEqualTo, Or

import tableformat as tf
from tableformat.errors import InvalidArgumentError, InvalidPredicateError


def _wrapped(inner: BooleanExpression, number: int) -> BooleanExpression:
    return (And if number % 2 else Or)(EqualTo("id", number), inner)


def _wrapped_for_pyarrow(inner: pc.Expression, number: int) -> pc.Expression:
    this = pc.field("id") == number
    return this & inner if number % 2 else this | inner


CASTS = "::BIGINT" * 3000
DEEP: dict[str, Callable[[int], Any]] = {
    "casts": lambda depth: "id = 1" + "::BIGINT" * depth,
    "casts_in": lambda depth: "id IN (1" + "::BIGINT" * depth + ")",
    "casts_between": lambda depth: "id BETWEEN 0 AND 1" + "::BIGINT" * depth,
    "casts_of_the_column": lambda depth: "id" + "::BIGINT" * depth + " = 1",
    "sums": lambda depth: "id = 1" + " + 1" * depth,
    "nots": lambda depth: "NOT " * depth + "id + 1 = 1",
    "iceberg": lambda depth: reduce(_wrapped, range(depth), EqualTo("id", 1)),
    "iceberg_not": lambda depth: reduce(lambda e, _: Not(And(e, EqualTo("id", 1))), range(depth), EqualTo("id", 1)),
    "pyarrow": lambda depth: reduce(_wrapped_for_pyarrow, range(depth), pc.field("id") == 1),
}


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("v", pa.int64())]))
    table.append(pa.table({"id": [1], "v": [1]}))
    return table


@pytest.mark.parametrize("name", every(3, DEEP))
def test_deeply_nested_condition_raises_library_error(table: tf.Table, name: str) -> None:
    deep = DEEP[name](200 if "iceberg" in name or name == "pyarrow" else 3000)
    for call in (
        lambda: table.scan(where=deep),
        lambda: table.delete(where=deep),
        lambda: table.update(deep, set={"v": 1}),
        lambda: table.overwrite(pa.table({"id": [1], "v": [1]}), where=deep),
        lambda: table.changes(where=deep),
    ):
        with pytest.raises(InvalidPredicateError):
            call()
    with pytest.raises(InvalidArgumentError):
        table.add_check("deep", deep)
    assert table.refresh().scan().to_arrow().to_pylist() == [{"id": 1, "v": 1}]


def test_long_operator_chain_is_accepted(table: tf.Table) -> None:
    chain = reduce(And, (NotEqualTo("id", number) for number in range(2, 202)))
    assert table.scan(where=chain).explain().files
    assert table.scan(where=chain).count() == 1


@pytest.mark.parametrize("text", ["1" + CASTS, "v" + " + 1" * 5000, "(" * 3000 + "1" + ")" * 3000])
def test_deeply_nested_expression_raises_library_error(table: tf.Table, text: str) -> None:
    merge = table.merge(pa.table({"id": [1]}), on="id")
    for call in (
        lambda: table.update("id = 1", set={"v": text}),
        lambda: merge.when_matched_update({"v": text}).execute(),
        lambda: table.merge(pa.table({"id": [1]}), on="id").when_matched_delete(f"{text} = 1").execute(),
        lambda: table.merge(pa.table({"k": [1]}), on=f"k = {text}").when_matched_delete().execute(),
    ):
        with pytest.raises(InvalidArgumentError):
            call()
    assert table.refresh().scan().to_arrow().to_pylist() == [{"id": 1, "v": 1}]
