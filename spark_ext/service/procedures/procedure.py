"""A procedure as data: its parameters and result columns in Spark's types, and the function that implements it.

A procedure is a function with the decorator `procedure`, which provides its name and description. Spark receives the
rest from `describe`. An optional argument that CALL omits, or sets to NULL, has the default of the function's
parameter.
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
    """A view in the calling session, which the Java side creates."""

    name: str
    """The name in SQL."""
    table: tuple[str, ...]
    """The table that the view reads, in this catalog."""
    options: Mapping[str, str]
    """Options of the read."""
    steps: Sequence[Sequence[str]]
    """Steps that are applied in order, each on the columns of the previous step: `["where", ...]` keeps the rows that
    match, `["select", ...]` computes columns."""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "table": list(self.table),
            "options": dict(self.options),
            "steps": [list(step) for step in self.steps],
        }


@dataclass(frozen=True, slots=True)
class WithViews:
    """The rows of a procedure, and the views that it creates."""

    rows: Rows
    views: Sequence[TemporaryView]


ANY: Final = None
"""The type of a parameter that accepts a value of any type."""
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


Role: TypeAlias = Literal["value", "table", "other_table", "name", "rows", "ranges", "source", "file_list", "condition"]
"""The kind of an argument:

- value: passed unchanged.
- table: the table that the procedure works on.
- other_table: text that names another table, like `table` (PR-2, PR-21). The function receives the table.
- name: a name in the catalog that need not exist. The function receives its parts.
- rows: a table or view that Spark reads. The function receives its distinct rows as an Arrow table (PR-25,
  `SourceRows`).
- ranges: the same for rows that are ranges, so the columns are `lower_<column>` and `upper_<column>` (PR-28).
- source: a table or a directory of files that Spark can read, described by `SourceTables` of the Java side.
- file_list: a view of the session that lists files (`FileLists`). The function receives `file_path` and
  `last_modified`.
- condition: text of a condition on the table. The function receives its parts (`conditions.py`).
"""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of CALL."""

    name: str
    type: SparkType | None
    comment: str
    is_required: bool = False
    role: Role = "value"
    value_in_tests: Any = None
    """The default in a session with `spark.testing`; None: no separate default."""

    def __str__(self) -> str:
        """A line of the description. Spark does not list the parameters of procedures that inspect their arguments."""
        required = ", required" if self.is_required else ""
        return f"    {self.name} ({_type_name(self.type)}{required}): {self.comment}"


_TABLE: Final = Parameter("table", "string", "Name of the table, such as 'db.t'.", is_required=True, role="table")
_BRANCH: Final = Parameter(BRANCH, "string", "The branch to read and change; main by default.")
_ALL_COLUMNS: Final = Parameter("all_columns", "boolean", "Also return our columns, after Iceberg's; false by default.")


@dataclass(frozen=True, slots=True)
class Procedure:
    """The description of a procedure for Spark, and the function to run."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    columns: pa.Schema
    """Columns of every result: Iceberg's columns, if Iceberg has the procedure."""
    more_columns: pa.Schema
    """Additional columns on request, after the others."""
    changes_table: bool
    function: Callable[..., Rows | WithViews]

    def describe(self) -> dict[str, Any]:
        """The description for LakeProcedure of the Java side."""
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
        """Whether the procedure works on an existing table; otherwise the function receives the session."""
        return _TABLE in self.parameters

    def run(
        self, load: Callable[[str], Table | Session], arguments: Mapping[str, Any], *, is_in_test: bool = False
    ) -> tuple[pa.Table, Sequence[TemporaryView]]:
        """PR-1, PR-4, PR-22: the rows, and the views to create. `load` opens the table on a branch. `arguments` are
        those in the CALL, and those whose default is NULL."""
        for parameter in self.parameters:
            if parameter.is_required and parameter != _TABLE and arguments.get(parameter.name) is None:
                raise InvalidArgumentError(f"{self.name}: the argument {parameter.name!r} is required, but it is NULL.")
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
    """Register the function as the procedure of its name: `def name(table, *, argument=default)`, which returns rows.

    `more_columns` are our additions to a procedure of Iceberg's. They add the parameter `all_columns`, and the function
    always returns them (PR-22). `on_branch` adds the parameter `branch`: the function receives the table on that
    branch. Without `has_table`, no parameter `table` is added and the function receives the session.
    """
    ours = pa.schema(more_columns)

    def register(function: Callable[..., _Answer]) -> Callable[..., _Answer]:
        name = function.__name__
        assert name not in _procedures, f"two procedures have the name {name}"
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
    """PR-3: the procedure with this name, ignoring case. Raises NotFoundError with the nearest name."""
    *namespace, name = identifier
    found = _procedures.get(name.lower()) if tuple(part.lower() for part in namespace) == SYSTEM else None
    if found is None:
        hint = nearest_hint(f"system.{name.lower()}", [f"system.{each}" for each in _procedures])
        raise NotFoundError(
            f"no procedure {'.'.join(identifier)!r}: all procedures are in the namespace 'system'.{hint}"
        )
    return found


def not_null(kind: pa.DataType, *names: str) -> list[pa.Field]:
    """Result columns of one type that are never null."""
    return [pa.field(name, kind, nullable=False) for name in names]
