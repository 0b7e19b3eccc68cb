"""The argument `where` of procedures: predicates that Spark made of its text (`TableCondition` of the Java side)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.expressions import And, BooleanExpression
from pyiceberg.schema import Schema

from spark_ext.service.wire.expressions import SparkExpression, exact_filter, pruning_filter, transform_call
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


def condition(where: Sequence[Part] | None, table: Table) -> BooleanExpression | None:
    """PR-8: the parts as one filter, which means the same rows."""
    schema = table.metadata.schema()
    filters = [_exact(part, schema) for part in where or ()]
    return And(*filters) if len(filters) > 1 else filters[0] if filters else None


def file_condition(where: Sequence[Part] | None, table: Table) -> FileCondition:
    """PR-8: the same, and parts with functions of the catalog that no filter says are asked of partitions."""
    schema = table.metadata.schema()
    of_partitions = [part for part in where or () if _is_of_partitions(part, schema)]
    others = [part for part in where or () if part not in of_partitions]
    if not of_partitions:
        return FileCondition(condition(others, table))
    predicates = [part.predicate for part in of_partitions]
    plan = table.scan(where=pruning_filter(predicates, schema)).plan()
    left = PartitionPredicates(predicates, table.view).narrowed(plan)
    paths = frozenset(file.file_path for file in (*(task.data_file for task in left.tasks), *left.covered))
    return FileCondition(condition(others, table), paths)


def _exact(part: Part, schema: Schema) -> BooleanExpression:
    if _is_of_partitions(part, schema):
        raise InvalidPredicateError(
            f"where: {part.text} is asked of partitions, which rewrite_data_files does alone. Compare columns with "
            "constants."
        )
    found = exact_filter([part.predicate], schema)
    assert found is not None, "it has a filter or is asked of partitions"
    return found


def _is_of_partitions(part: Part, schema: Schema) -> bool:
    """InvalidPredicateError where a piece of it has neither a filter nor a function of the catalog."""
    if exact_filter([part.predicate], schema) is not None:
        return False
    for leaf in _leaves(part.predicate):
        if not _calls_function(leaf) and exact_filter([leaf], schema) is None:
            raise _no_condition(part)
    return True


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
        "system.bucket(4, id) in rewrite_data_files, with constants by =, <=>, <>, <, <=, >, >=, IN, BETWEEN, IS NULL "
        "and LIKE 'a%', joined by AND, OR and NOT."
    )
