"""The argument `where` of procedures, as predicates that Spark parsed from its text (`TableCondition` of the Java
side)."""

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
    """One of the predicates that must all be true."""

    text: str
    predicate: SparkExpression

    @classmethod
    def all_of(cls, parts: Sequence[Sequence[Any]]) -> tuple[Part, ...]:
        return tuple(cls(text, predicate) for text, predicate in parts)


@dataclass(frozen=True, slots=True)
class FileCondition:
    """The data files that a job processes."""

    where: BooleanExpression | None
    """The filter for the library."""
    only_paths: frozenset[str] | None = None
    """Locations of the files that match the predicates with functions of the catalog; None without such predicates."""


def file_condition(where: Sequence[Part] | None, table: Table) -> FileCondition:
    """PR-8: the predicates as one filter that matches the same rows. Predicates with functions of the catalog that have
    no equivalent filter are evaluated on partitions."""
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


def exact_condition(where: Sequence[Part], table: Table, procedure: str) -> BooleanExpression:
    """The predicates as one filter that matches the same rows. Raises InvalidPredicateError for a predicate that is no
    comparison with constants."""
    schema = table.metadata.schema()
    filters = [exact_filter([part.predicate], schema) for part in where]
    exact = [each for each in filters if each is not None]
    if len(exact) < len(filters):
        unknown = next(part for part, found in zip(where, filters, strict=True) if found is None)
        raise InvalidPredicateError(
            f"{procedure}: {unknown.text!r} does not compare columns with constants. Nothing was changed. Use "
            "comparisons, IN, IS NULL and LIKE 'text%'."
        )
    return all_of(exact)


def _check_is_of_partitions(part: Part, schema: Schema) -> None:
    """Raises InvalidPredicateError if a part of the predicate is neither a filter nor a comparison of a function of the
    catalog."""
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
    """Whether the predicate compares a function of one column with constants."""
    arguments = leaf.get("arguments", ())
    calls = [each for each in arguments if (call := transform_call(each)) is not None and call.width != 0]
    return len(calls) == 1 and all("literal" in each for each in arguments if each not in calls)


def _no_condition(part: Part) -> InvalidPredicateError:
    return InvalidPredicateError(
        f"where: {part.text} cannot be used to choose files. Compare columns, or functions of the catalog such as "
        "system.bucket(4, id), with constants by =, <=>, <>, <, <=, >, >=, IN, BETWEEN, IS NULL and LIKE 'a%', "
        "joined by AND, OR and NOT."
    )
