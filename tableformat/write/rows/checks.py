"""CHECK constraints of a table: conditions that no row may violate (`specs/constraints.md`).

A condition is Spark SQL, and Spark enforces it. If the condition can be expressed as an Iceberg expression, that
expression is stored with it, and rows written by this library are checked against it. Otherwise such rows are rejected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from pydantic import ValidationError
from pyiceberg.expressions import BooleanExpression, Not
from pyiceberg.schema import Schema

from tableformat.errors import CommitConflictError, InvalidArgumentError, TableFormatError, UnsupportedFeatureError
from tableformat.filters.bound_filter import BoundFilter, bind_filter, comparisons
from tableformat.filters.row_filter import matching_rows
from tableformat.properties import CHECK_EXPRESSION_PREFIX, CHECK_PREFIX
from tableformat.write.rows.column_casts import Misfits


@dataclass(frozen=True, slots=True)
class RowCheck:
    """One constraint, ready to check rows of the table's schema."""

    name: str
    condition: str
    """Spark's SQL, for the message."""
    column: str
    """The first column that the condition names."""
    broken: BoundFilter
    """True for a row whose condition is false. A condition that is unknown because of a null is not violated."""

    def misfits(self, batch: pa.RecordBatch) -> Misfits | None:
        """CK-2: the rows that violate the constraint."""
        mask = matching_rows(self.broken, batch)
        if isinstance(mask, bool):
            positions = np.arange(batch.num_rows if mask else 0)
        else:
            positions = np.flatnonzero(np.asarray(mask.fill_null(False)))
        if not len(positions):
            return None
        reason = f"violates CHECK constraint {self.name!r}: {self.condition}"
        return Misfits(positions, _repeated(self.column, len(positions)), _repeated(reason, len(positions)))


class RowTest(Protocol):
    """A check of rows besides the types of the columns: a constraint, an interval, groups."""

    def misfits(self, batch: pa.RecordBatch) -> Misfits | None:
        """The rows of a batch in the table's schema that must not be written."""


def is_check_property(name: str) -> bool:
    """CK-1: whether a table property of this name is part of a constraint."""
    return name.startswith((CHECK_PREFIX, CHECK_EXPRESSION_PREFIX))


def check_conditions(properties: Mapping[str, str]) -> dict[str, str]:
    """CK-1: the conditions of a table's CHECK constraints, by the names of the constraints."""
    found = {name: value for name, value in properties.items() if name.startswith(CHECK_PREFIX)}
    return {name[len(CHECK_PREFIX) :]: value for name, value in sorted(found.items())}


def row_checks(properties: Mapping[str, str], schema: Schema, *, table: str) -> tuple[RowCheck, ...]:
    """CK-2: the constraints to check rows against. Raises UnsupportedFeatureError if only Spark can enforce one."""
    return tuple(
        _row_check(name, condition, properties.get(f"{CHECK_EXPRESSION_PREFIX}{name}"), schema, table)
        for name, condition in check_conditions(properties).items()
    )


def refuse_check_set_by_hand(given: Mapping[str, str], present: Mapping[str, str], schema: Schema) -> None:
    """CK-6: check the constraints among properties that a caller sets on a table with the properties `present`.

    Raises InvalidArgumentError if rows could not be checked afterwards: without the condition, without the expression,
    or with an expression that is not a filter on the schema.
    """
    prefixes = (CHECK_EXPRESSION_PREFIX, CHECK_PREFIX)
    names = {name.removeprefix(prefix) for prefix in prefixes for name in given if name.startswith(prefix)}
    together = {**present, **given}
    for name in sorted(names):
        if not together.get(f"{CHECK_PREFIX}{name}", "").strip():
            problem = f"{CHECK_PREFIX}{name} with its condition in Spark's SQL is missing"
        elif f"{CHECK_EXPRESSION_PREFIX}{name}" not in together:
            problem = f"{CHECK_EXPRESSION_PREFIX}{name} with the condition as JSON of an Iceberg expression is missing"
        else:
            problem = _unbindable(together[f"{CHECK_EXPRESSION_PREFIX}{name}"], schema)
        if problem:
            raise InvalidArgumentError(
                f"CHECK constraint {name!r} cannot be set as table properties: {problem}. Rows could no longer be "
                f"added from Python. Nothing was changed. In Spark, ALTER TABLE ... ADD CONSTRAINT {name} CHECK "
                "(...) sets both properties."
            )


def _unbindable(expression: str, schema: Schema) -> str:
    """The reason why the stored expression is not a filter on the schema; empty if it is one."""
    try:
        bind_filter(BooleanExpression.model_validate_json(expression), schema)
    except ValidationError:
        return f"the expression {expression!r} is not JSON of an Iceberg expression"
    except TableFormatError as error:
        return str(error).rstrip(".")
    return ""


def refuse_changed_checks(written_under: Mapping[str, str], now: Mapping[str, str], *, table: str) -> None:
    """CK-3: raises CommitConflictError for rows that were written under other CHECK constraints."""
    if check_conditions(written_under) != check_conditions(now):
        raise CommitConflictError(
            f"the CHECK constraints of {table} were changed while rows were written. Nothing was changed. Run the "
            "operation again."
        )


def refuse_column_of_check(table_properties: Mapping[str, str], column: str) -> None:
    """CK-4: raises InvalidArgumentError for renaming or dropping a column that a condition may name."""
    for name, condition in check_conditions(table_properties).items():
        if re.search(rf"(?<!\w){re.escape(column)}(?!\w)", condition, re.IGNORECASE):
            raise InvalidArgumentError(
                f"column {column!r} is used by the CHECK constraint {name!r}: {condition}. Drop the constraint "
                f"first: ALTER TABLE ... DROP CONSTRAINT {name} in Spark, drop_check({name!r}) in Python."
            )


def _row_check(name: str, condition: str, expression: str | None, schema: Schema, table: str) -> RowCheck:
    problem = "this library cannot evaluate it"
    if expression is not None:
        try:
            broken = bind_filter(Not(BooleanExpression.model_validate_json(expression)), schema)
        except (TableFormatError, ValidationError) as error:
            problem = str(error)
        else:
            return RowCheck(name, condition, _first_column(broken), broken)
    raise UnsupportedFeatureError(
        f"rows cannot be added to {table} from Python: its CHECK constraint {name!r}, {condition}, is enforced only "
        f"by Spark ({problem}). Nothing was changed. Write the rows with Spark, or drop the constraint: ALTER TABLE "
        f"... DROP CONSTRAINT {name} in Spark, drop_check({name!r}) in Python."
    )


def _first_column(broken: BoundFilter) -> str:
    return next((".".join(leaf.path) for leaf in comparisons(broken)), "")


def _repeated(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.large_string()), count)


def misfits_of(checks: Sequence[RowTest], batch: pa.RecordBatch) -> list[Misfits]:
    """The violations of the rows, in the order of the constraints."""
    return [found for check in checks if (found := check.misfits(batch)) is not None]
