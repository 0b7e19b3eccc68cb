"""`create_changelog_view`: a temporary view of `db.t.changes`, either with updates, or with net changes only.

Windows compare whole rows and count equal ones, so the table needs no key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from spark_ext.service.changes.changelog import END_OPTIONS, changelog_range
from spark_ext.service.ddl.tables import CHANGELOG
from spark_ext.service.procedures.column_names import as_spelled
from spark_ext.service.procedures.procedure import (
    STRING_MAP,
    Parameter,
    TemporaryView,
    WithViews,
    array_of,
    not_null,
    procedure,
)
from spark_ext.service.wire.spark_types import spark_schema
from tableformat.errors import InvalidArgumentError, UnknownColumnError
from tableformat.keys.table_key import key_field_ids, key_names
from tableformat.metadata.change_columns import CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT_ID
from tableformat.table import Table

_TYPE: Final = CHANGE_TYPE.name
_ORDINAL: Final = CHANGE_ORDINAL.name
_COMMIT: Final = (_ORDINAL, COMMIT_SNAPSHOT_ID.name)
_IS_DELETE: Final = f"{_TYPE} = 'DELETE'"
_WHOLE: Final = (
    "map('timeZone', 'UTC', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX', "
    "'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS', 'ignoreNullFields', 'false')"
)
"""Options of `to_json`: by default, times have milliseconds only and null fields are omitted."""


@procedure(
    Parameter("changelog_view", "string", "Name of the view, `<table>_changes` by default."),
    Parameter(
        "options", STRING_MAP, "Snapshots to read: start-snapshot-id, end-snapshot-id, start-timestamp, end-timestamp."
    ),
    Parameter("compute_updates", "boolean", "Whether a delete and an insert of the same row become an update."),
    Parameter("identifier_columns", array_of("string"), "The columns that identify a row; the key by default."),
    Parameter("net_changes", "boolean", "Whether changes that later ones undo are omitted; false by default."),
    columns=pa.schema(not_null(pa.string(), "changelog_view")),
    changes_table=False,
    on_branch=False,
)
def create_changelog_view(
    table: Table,
    *,
    changelog_view: str | None = None,
    options: Mapping[str, str] | None = None,
    compute_updates: bool | None = None,
    identifier_columns: Sequence[str] = (),
    net_changes: bool = False,
) -> WithViews:
    """Make a temporary view of the rows that snapshots inserted and deleted, without rows that were only copied."""
    options = dict(options or {})
    computes_updates = bool(identifier_columns) if compute_updates is None else compute_updates
    if computes_updates and net_changes:
        raise InvalidArgumentError(
            "create_changelog_view: compute_updates and net_changes cannot be combined. Create one view for each."
        )
    last = changelog_range(table.view, options, name=table.name).to_snapshot_id
    if last is not None and not any(name.casefold() in END_OPTIONS for name in options):
        options["end-snapshot-id"] = str(last)  # The view shows the same rows whenever it is read.
    columns = [_Column.of(field) for field in spark_schema(table.metadata.schema())["fields"]]
    identifiers = _identifiers(table, identifier_columns) if computes_updates else []
    name = changelog_view or _quoted(f"{table.iceberg.name()[-1]}_changes")
    view = TemporaryView(
        name, (*table.iceberg.name(), CHANGELOG), options, _steps(columns, identifiers, net_changes=net_changes)
    )
    return WithViews([{"changelog_view": name}], [view])


class _Column(str):
    """A column name, quoted for SQL, and the expression by which rows are compared."""

    __slots__ = ("compared",)
    compared: str

    @classmethod
    def of(cls, field: Mapping[str, Any]) -> _Column:
        column = cls(_quoted(field["name"]))
        # Windows cannot order maps. The JSON text of a map keeps the order in which it was written.
        column.compared = (
            f"to_json(named_struct('c', {column}), {_WHOLE})" if _has_no_order(field["type"]) else str(column)
        )
        return column


def _has_no_order(spark: Any) -> bool:
    match spark:
        case {"type": "map"} | "variant":
            return True
        case {"type": "array", "elementType": element}:
            return _has_no_order(element)
        case {"type": "struct", "fields": fields}:
            return any(_has_no_order(field["type"]) for field in fields)
    return False


def _identifiers(table: Table, stated: Sequence[str]) -> list[str]:
    schema = table.metadata.schema()
    plain = [name[1:-1].replace("``", "`") if name.startswith("`") else name for name in stated]
    spelled = [as_spelled(name, [field.name for field in schema.fields]) for name in plain]
    names = spelled or [*key_names(schema, key_field_ids(schema, table.properties))]
    for name in names:
        if name not in {field.name for field in schema.fields}:
            raise UnknownColumnError(name, [field.name for field in schema.fields], where="create_changelog_view")
    if not names:
        raise InvalidArgumentError(
            f"create_changelog_view: updates require columns that identify a row, but {table.name} has no key. Pass "
            "identifier_columns."
        )
    return [_quoted(name) for name in names]


def _steps(columns: Sequence[_Column], identifiers: Sequence[str], *, net_changes: bool) -> list[list[str]]:
    compared = [column.compared for column in columns]
    if net_changes:
        return _net_changes(compared, [*columns, _TYPE, *_COMMIT])
    steps = _without_copies(compared, [*columns, _TYPE, *_COMMIT])
    return [*steps, *_updates(identifiers, columns)] if identifiers else steps


def _without_copies(compared: Sequence[str], columns: Sequence[str]) -> list[list[str]]:
    """Remove pairs of equal rows that one snapshot both deleted and inserted."""
    same = f"PARTITION BY {', '.join([*compared, *_COMMIT])}"
    return [
        [
            "select",
            "*",
            f"count_if({_IS_DELETE}) OVER ({same}) AS __deletes",
            f"count_if(NOT {_IS_DELETE}) OVER ({same}) AS __inserts",
            f"row_number() OVER ({same}, {_TYPE} ORDER BY {_TYPE}) AS __number",
        ],
        ["where", "__number > least(__deletes, __inserts)"],
        ["select", *columns],
    ]


def _net_changes(compared: Sequence[str], columns: Sequence[str]) -> list[list[str]]:
    """Cancel inserts against deletes of equal rows. The number of remaining rows is the difference of the two counts.

    They get the commit of the first change after the last point at which all earlier ones had cancelled out.
    """
    same = f"PARTITION BY {', '.join(compared)}"
    in_order = f"{same} ORDER BY {_ORDINAL}, {_TYPE}"
    so_far = f"{in_order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    return [
        ["select", "*", f"IF({_IS_DELETE}, -1L, 1L) AS __sign"],
        [
            "select",
            "*",
            f"sum(__sign) OVER ({so_far}) AS __sum",
            f"row_number() OVER ({in_order}) AS __number",
            f"sum(__sign) OVER ({same}) AS __net",
        ],
        ["select", "*", f"max(IF(__sum = 0, __number, 0)) OVER ({same}) AS __undone"],
        ["where", "__net <> 0 AND __number = __undone + 1"],
        ["select", *columns, "explode(sequence(1L, abs(__net))) AS __copy"],
        ["select", *columns],
    ]


def _updates(identifiers: Sequence[str], columns: Sequence[str]) -> list[list[str]]:
    """Combine a delete and an insert of one row in one snapshot into an update: the row before and the row after."""
    same = f"PARTITION BY {', '.join([*identifiers, *_COMMIT])}"
    names = ", ".join(identifiers).replace("'", "\\'")
    message = (
        f"'create_changelog_view: one snapshot changed several rows with the same {names}. Pass identifier_columns "
        "that identify a row, or omit compute_updates.'"
    )
    changed = (
        f"CASE WHEN __deletes = 1 AND __inserts = 1 THEN IF({_IS_DELETE}, 'UPDATE_BEFORE', 'UPDATE_AFTER') "
        f"WHEN __deletes > 0 AND __deletes + __inserts > 1 THEN CAST(raise_error({message}) AS STRING) ELSE {_TYPE} END"
    )
    return [
        [
            "select",
            "*",
            f"count_if({_IS_DELETE}) OVER ({same}) AS __deletes",
            f"count_if(NOT {_IS_DELETE}) OVER ({same}) AS __inserts",
        ],
        ["select", *columns, f"{changed} AS {_TYPE}", *_COMMIT],
    ]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
