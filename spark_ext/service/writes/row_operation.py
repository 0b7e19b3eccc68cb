"""SP-106: the option `operation` of a write: the effect of its rows on stored rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.types import NestedField

from tableformat.errors import InvalidArgumentError, InvalidKeyError, UnsupportedFeatureError
from tableformat.operations.options import one_of
from tableformat.properties import ORDER_COLUMN
from tableformat.write.rows.change_codes import DELETES, TRUNCATES, UPSERTS
from tableformat.write.rows.replacing_rows import order_columns

OPERATION: Final = "operation"
OP_COLUMN: Final = "op-column"
UPSERT: Final = "upsert"
DELETE: Final = "delete"
INSERT_IGNORE: Final = "insert-ignore"
INSERT_ERROR: Final = "insert-error"
CHANGES: Final = "changes"
OPERATIONS: Final = (UPSERT, DELETE, INSERT_IGNORE, INSERT_ERROR, CHANGES)
CODES: Final = {"upsert": UPSERTS, "delete": DELETES, "truncate": TRUNCATES}
"""SP-108: the values of the operation column, in upper case, by operation."""
_NOT_ARRANGED: Final[dict[str, Any]] = {
    **{"partition": (), "key": (), "prefix": (), "rest": (), "order": ()},
    **{"distribution": "none", "ranges": None, "sorts_by_place": False},
}
"""SP-107: rows of a delete may lack the columns by which rows are distributed and sorted."""
_COMPARED: Final = ("", UPSERT, CHANGES)
"""SP-111: operations whose rows are compared with the order column."""
_INSTEAD: Final = {
    DELETE: f"Use {OPERATION} = '{CHANGES}' with delete events, or DELETE FROM",
    INSERT_IGNORE: f"Use {OPERATION} = '{UPSERT}' or UPSERT INTO",
    INSERT_ERROR: f"Use {OPERATION} = '{UPSERT}' or UPSERT INTO",
}
_EXCLUDED: Final = ("replace-prefix", "replace-interval", "lower", "upper", "allow-outside")


@dataclass(frozen=True, slots=True)
class RowOperation:
    """The operation of a write's rows; without one they are added."""

    name: str = ""
    op_column: str | None = None
    """SP-108: the column with the operation of each row."""

    @classmethod
    def parse(cls, named: Mapping[str, str]) -> RowOperation:
        """Parse the options. Raises InvalidArgumentError for an unknown operation, and for options that exclude each
        other."""
        if OPERATION not in named:
            if OP_COLUMN in named:
                raise InvalidArgumentError(
                    f"option {OP_COLUMN} requires {OPERATION} = '{CHANGES}'. Nothing was written. Pass both or neither."
                )
            return NO_OPERATION
        name = one_of(named[OPERATION].strip().casefold(), OPERATIONS, option=OPERATION)
        for other in _EXCLUDED:
            if other in named:
                raise InvalidArgumentError(
                    f"options {OPERATION} and {other} cannot be combined, because each defines which rows are "
                    "replaced. Nothing was written. Remove one of them."
                )
        if name == CHANGES:
            _check_changes(named)
        elif OP_COLUMN in named:
            raise InvalidArgumentError(
                f"option {OP_COLUMN} defines the operation of each row, but {OPERATION} = {name!r} defines it for "
                f"all rows. Nothing was written. Remove {OP_COLUMN}, or use {OPERATION} = '{CHANGES}'."
            )
        if name == DELETE:
            _check_delete(named)
        return cls(name, named.get(OP_COLUMN))

    def check(self, key: Sequence[str], order_by: Sequence[str], table: str) -> None:
        """Raises InvalidKeyError for a table without a key, and InvalidArgumentError for an order within one key."""
        if not self.name:
            return
        if not key:
            raise InvalidKeyError(
                f"option {OPERATION} = {self.name!r} of a write to {table} requires a key, which identifies the "
                f"stored rows. Nothing was written. Set the columns that identify a row: ALTER TABLE {table} SET "
                "TBLPROPERTIES ('tableformat.key' = '...')."
            )
        if order_by:
            order_columns(order_by, key)

    def plan(self) -> dict[str, Any]:
        """The part of a write plan that tasks need."""
        arranged = _NOT_ARRANGED if self.name == DELETE else {}
        return {"operation": self.name, "codes": CODES, **arranged}


NO_OPERATION: Final = RowOperation()
"""Rows are added."""


def refuse_unordered(order: NestedField | None, operation: str, replace_equal: Sequence[str], table: str) -> None:
    """SP-111: raise UnsupportedFeatureError for rows that would replace or delete newer ones without a comparison."""
    if order is None or (operation in _COMPARED and not replace_equal):
        return
    what = f"{OPERATION} = {operation!r}" if operation else f"a replacement by ({', '.join(replace_equal)})"
    instead = _INSTEAD.get(operation, "Replace by the first columns of the key, or use UPSERT INTO")
    raise UnsupportedFeatureError(
        f"{what} of a write to {table} is not supported: the table has the order column {order.name!r} "
        f"({ORDER_COLUMN}), but this write does not compare rows by it. Nothing was written. {instead}; or remove "
        "the property."
    )


def _check_changes(named: Mapping[str, str]) -> None:
    for option, what in (
        (OP_COLUMN, "the column with the operation of each row"),
        ("order-by", "the columns that order them"),
    ):
        if option not in named:
            raise InvalidArgumentError(
                f"option {OPERATION} = '{CHANGES}' needs {option}, {what}: the last event of a key counts, and "
                "rows of Spark have no order. Nothing was written."
            )


def _check_delete(named: Mapping[str, str]) -> None:
    for option in ("order-by", "on-refused", "refused-rows-table"):
        if option in named:
            raise InvalidArgumentError(
                f"option {option} applies to added rows, but {OPERATION} = '{DELETE}' adds none. Nothing was "
                "written. Remove the option."
            )
