"""The argument `where` of procedures: predicates that Spark made of its text (`TableCondition` of the Java side)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.expressions import BooleanExpression
from pyiceberg.schema import Schema

from spark_ext.service.wire.expressions import SparkExpression, all_of, exact_filter, pruning_filter, transform_call
from spark_ext.service.wire.partition_predicates import PartitionPredicates
from tableformat.errors import InvalidPredicateError
from tableformat.table import Table

_JOINTS: Final = frozenset({"AND", "OR", "NOT"})


@dataclass(frozen=True, slots=True)
class Part:
    """One of the predicates that all have to be true."""

    text: str
    predicate: SparkExpression

    @classmethod
    def all_of(cls, parts: Sequence[Sequence[Any]]) -> tuple[Part, ...]:
        return tuple(cls(text, predicate) for text, predicate in parts)


@dataclass(frozen=True, slots=True)
class FileCondition:
    """Which data files a job is for."""

    where: BooleanExpression | None
    """As the library reads it."""
    only_paths: frozenset[str] | None = None
    """Locations of the files that functions of the catalog leave; None where partitions are not asked."""


def file_condition(where: Sequence[Part] | None, table: Table) -> FileCondition:
    """PR-8: the parts as one filter, which means the same rows; those with functions of the catalog that no filter says
    are asked of partitions."""
    schema = table.metadata.schema()
    filters = [exact_filter([part.predicate], schema) for part in where or ()]
    exact = [each for each in filters if each is not None]
    filter_ = all_of(exact) if exact else None
    of_partitions = [part for part, found in zip(where or (), filters, strict=True) if found is None]
    if not of_partitions:
        return FileCondition(filter_)
    for part in of_partitions:
        _check_is_of_partitions(part, schema)
    predicates = [part.predicate for part in of_partitions]
    plan = table.scan(where=pruning_filter(predicates, schema)).plan()
    left = PartitionPredicates(predicates, table.view).narrowed(plan)
    paths = frozenset(file.file_path for file in (*(task.data_file for task in left.tasks), *left.covered))
    return FileCondition(filter_, paths)


def _check_is_of_partitions(part: Part, schema: Schema) -> None:
    """InvalidPredicateError where a piece of it has neither a filter nor a function of the catalog."""
    for leaf in _leaves(part.predicate):
        if not _calls_function(leaf) and exact_filter([leaf], schema) is None:
            raise _no_condition(part)


def _leaves(predicate: SparkExpression) -> Iterator[SparkExpression]:
    if predicate.get("operator") not in _JOINTS:
        yield predicate
        return
    for each in predicate["arguments"]:
        yield from _leaves(each)


def _calls_function(leaf: SparkExpression) -> bool:
    """Whether it compares a function of one column with constants."""
    arguments = leaf.get("arguments", ())
    calls = [each for each in arguments if (call := transform_call(each)) is not None and call.width != 0]
    return len(calls) == 1 and all("literal" in each for each in arguments if each not in calls)


def _no_condition(part: Part) -> InvalidPredicateError:
    return InvalidPredicateError(
        f"where: {part.text} cannot choose files. Compare columns, or functions of the catalog such as "
        "system.bucket(4, id), with constants by =, <=>, <>, <, <=, >, >=, IN, BETWEEN, IS NULL "
        "and LIKE 'a%', joined by AND, OR and NOT."
    )
