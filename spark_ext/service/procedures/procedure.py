"""A procedure as data: its parameters and result columns in Spark's types, and the function that does it.

A procedure is written once, as a function with the decorator `procedure`. Its name and description are the function's;
Spark learns the rest from `describe`. What an optional argument is when CALL leaves it out, or gives NULL, is the
default of the function's parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypeVar

import pyarrow as pa
from pyiceberg.table.refs import MAIN_BRANCH

from spark_ext.service.session import Session
from spark_ext.service.wire.arrow_stream import spark_schema_of_arrow
from spark_ext.service.wire.spark_types import SparkType
from tableformat.errors import InvalidArgumentError, NotFoundError, nearest_hint
from tableformat.table import Table

Rows: TypeAlias = "Iterable[Mapping[str, Any]]"


@dataclass(frozen=True, slots=True)
class TemporaryView:
    """A view of the session that calls, which the Java side makes."""

    name: str
    """As SQL has it."""
    table: tuple[str, ...]
    """What it reads, in this catalog."""
    options: Mapping[str, str]
    """Of the read."""
    steps: Sequence[Sequence[str]]
    """Expressions that are selected one after the other, each on the columns of the step before: `["where", ...]`
    keeps the rows that match, `["select", ...]` makes columns."""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "table": list(self.table),
            "options": dict(self.options),
            "steps": [list(step) for step in self.steps],
        }


@dataclass(frozen=True, slots=True)
class WithViews:
    """Rows of a procedure, and views that it makes."""

    rows: Rows
    views: Sequence[TemporaryView]


ANY: Final = None
"""The type of a parameter that takes what it is given."""
STRING_MAP: Final[SparkType] = {
    "type": "map",
    "keyType": "string",
    "valueType": "string",
    "valueContainsNull": True,
}
BRANCH: Final = "branch"
SYSTEM: Final = ("system",)
"""The namespace of all procedures."""


def array_of(element: str) -> SparkType:
    return {"type": "array", "elementType": element, "containsNull": True}


Role: TypeAlias = Literal["value", "table", "other_table", "name", "rows", "source", "file_list", "condition"]
"""What an argument is: a value; the table that the procedure is about; text that names another table, as `table` does
(PR-2, PR-21), of which the function gets the table; a name in the catalog that need not be there, as its parts; a table
or view that Spark reads, of which the function gets the distinct rows as an Arrow table (PR-25, `SourceRows`); a table
or directory of files that Spark knows, which the Java side's `SourceTables` describes; a view of the session that lists
files (`FileLists`), of which the function gets `file_path` and `last_modified`; text of a condition over the table, of
which the function gets the parts (`conditions.py`)."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of CALL."""

    name: str
    type: SparkType | None
    comment: str
    is_required: bool = False
    role: Role = "value"
    value_in_tests: Any = None
    """What it is in a session with `spark.testing` where CALL leaves it out; None: nothing."""

    def __str__(self) -> str:
        """As DESCRIBE PROCEDURE shows it, which knows no parameters of procedures that look at their arguments."""
        required = ", required" if self.is_required else ""
        return f"    {self.name} ({_type_name(self.type)}{required}): {self.comment}"


_TABLE: Final = Parameter("table", "string", "Name of the table, such as 'db.t'.", is_required=True, role="table")
_BRANCH: Final = Parameter(BRANCH, "string", "The branch that is read and changed, main by default.")
_ALL_COLUMNS: Final = Parameter("all_columns", "boolean", "Answer our columns too, after Iceberg's; false by default.")


@dataclass(frozen=True, slots=True)
class Procedure:
    """What Spark has to know of a procedure, and how it is run."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    columns: pa.Schema
    """Of each answer: Iceberg's, where Iceberg has the procedure."""
    more_columns: pa.Schema
    """Of an answer that was asked for them, after the others."""
    changes_table: bool
    function: Callable[..., Rows | WithViews]

    def describe(self) -> dict[str, Any]:
        """As the Java side's LakeProcedure reads it."""
        return {
            "name": self.name,
            "description": "\n".join([self.description, *map(str, self.parameters)]),
            "parameters": [
                {
                    "name": each.name,
                    "type": each.type,
                    "comment": each.comment,
                    "is_required": each.is_required,
                    "role": each.role,
                }
                for each in self.parameters
            ],
            "columns": spark_schema_of_arrow(self.columns),
            "more_columns": spark_schema_of_arrow(self.more_columns),
            "changes_table": self.changes_table,
        }

    @property
    def has_table(self) -> bool:
        """Whether it is about a table that is there; otherwise the function gets the session."""
        return _TABLE in self.parameters

    def run(
        self, load: Callable[[str], Table | Session], arguments: Mapping[str, Any], *, is_in_test: bool = False
    ) -> tuple[pa.Table, Sequence[TemporaryView]]:
        """PR-1, PR-4, PR-22: the rows, and the views to make. `load` opens the table on a branch; `arguments` are those
        that CALL names or defaults to NULL."""
        for parameter in self.parameters:
            if parameter.is_required and parameter != _TABLE and arguments.get(parameter.name) is None:
                raise InvalidArgumentError(f"{self.name}: the argument {parameter.name!r} is required, and it is NULL.")
        given = {name: value for name, value in arguments.items() if value is not None}
        if is_in_test:
            in_tests = {each.name: each.value_in_tests for each in self.parameters if each.value_in_tests is not None}
            given = {**in_tests, **given}
        branch = given.pop(BRANCH, MAIN_BRANCH) if _BRANCH in self.parameters else MAIN_BRANCH
        columns = self.columns
        if self.more_columns and given.pop(_ALL_COLUMNS.name, False):
            columns = pa.schema([*columns, *self.more_columns])
        answer = self.function(load(branch), **given)
        rows, views = (answer.rows, answer.views) if isinstance(answer, WithViews) else (answer, ())
        return pa.Table.from_pylist([dict(row) for row in rows], columns), views


def _type_name(spark: SparkType | None) -> str:
    match spark:
        case None:
            return "any type"
        case {"type": "array", "elementType": element}:
            return f"array<{element}>"
        case {"type": "map", "keyType": key, "valueType": value}:
            return f"map<{key}, {value}>"
    return str(spark)


_Answer = TypeVar("_Answer", bound="Rows | WithViews")
_procedures: Final[dict[str, Procedure]] = {}


def procedure(
    *parameters: Parameter,
    columns: pa.Schema,
    more_columns: Iterable[pa.Field] = (),
    changes_table: bool = True,
    on_branch: bool = True,
    has_table: bool = True,
) -> Callable[[Callable[..., _Answer]], Callable[..., _Answer]]:
    """Make the function the procedure of its name: `def name(table, *, argument=default)`, which gives rows.

    `more_columns` are ours, of a procedure of Iceberg's: they add the parameter `all_columns`, and the function gives
    them always (PR-22). `on_branch` adds the parameter `branch`: the function gets the table on it. Without `has_table`
    there is no parameter `table` but those given, and the function gets the session.
    """
    ours = pa.schema(more_columns)

    def register(function: Callable[..., _Answer]) -> Callable[..., _Answer]:
        name = function.__name__
        assert name not in _procedures, f"two procedures are called {name}"
        described = " ".join((function.__doc__ or "").split())
        _procedures[name] = Procedure(
            name,
            described,
            (
                *((_TABLE,) if has_table else ()),
                *parameters,
                *((_BRANCH,) if on_branch and has_table else ()),
                *((_ALL_COLUMNS,) if ours else ()),
            ),
            columns,
            ours,
            changes_table,
            function,
        )
        return function

    return register


def procedure_names() -> list[str]:
    return sorted(_procedures)


def procedure_named(identifier: tuple[str, ...]) -> Procedure:
    """PR-3: NotFoundError with the nearest name. Names are found whatever their case."""
    *namespace, name = identifier
    found = _procedures.get(name.lower()) if tuple(part.lower() for part in namespace) == SYSTEM else None
    if found is None:
        hint = nearest_hint(f"system.{name.lower()}", [f"system.{each}" for each in _procedures])
        raise NotFoundError(f"no procedure {'.'.join(identifier)!r}: all are in the namespace 'system'.{hint}")
    return found


def not_null(kind: pa.DataType, *names: str) -> list[pa.Field]:
    """Result columns of one type that are never null."""
    return [pa.field(name, kind, nullable=False) for name in names]
