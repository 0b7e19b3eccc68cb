"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tableformat.cli.completion import complete_table

if TYPE_CHECKING:
    from tableformat.operations.options import CommitKeywords

_TIME_TRAVEL = "Time travel"

TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A table of the catalog (db.t), a metadata.json, or a table directory.",
        autocompletion=complete_table,
    ),
]
WritableTableArgument = Annotated[
    str, typer.Argument(metavar="TABLE", help="A table of the catalog (db.t).", autocompletion=complete_table)
]
SnapshotOption = Annotated[
    int | None,
    typer.Option("--snapshot", metavar="ID", help="Read this snapshot.", rich_help_panel=_TIME_TRAVEL),
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME",
        help="Read the state at this time: ISO 8601, local time unless it has a zone.",
        rich_help_panel=_TIME_TRAVEL,
    ),
]
TagOption = Annotated[
    str | None, typer.Option("--tag", metavar="NAME", help="Read the snapshot of a tag.", rich_help_panel=_TIME_TRAVEL)
]
BranchOption = Annotated[
    str | None,
    typer.Option("--branch", metavar="NAME", help="Use this branch instead of main.", rich_help_panel=_TIME_TRAVEL),
]
WhereOption = Annotated[
    str | None, typer.Option("--where", metavar="SQL", help="Only rows that match, such as \"id1 = 'A' AND n >= 3\".")
]
FilesWhereOption = Annotated[
    str | None, typer.Option("--where", metavar="SQL", help="Only data files that may contain a matching row.")
]
ColumnsOption = Annotated[
    str | None, typer.Option("--columns", metavar="A,B", help="Only these columns, in this order.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be done. Nothing is changed.")]

ApplicationOption = Annotated[
    str | None,
    typer.Option("--application-id", metavar="NAME", help="With --batch-id: a repeated batch changes nothing."),
]
BatchOption = Annotated[str | None, typer.Option("--batch-id", metavar="NAME", help="The name of this batch.")]

UnchangedOption = Annotated[
    int | None,
    typer.Option(
        "--if-unchanged-since",
        metavar="SNAPSHOT",
        help="Fail if rows that the command deletes or replaces were added after this snapshot; -1 is an empty table.",
    ),
]


class Stale(StrEnum):
    """How rows that are older than the stored ones are handled."""

    IGNORE = "ignore"
    ERROR = "error"


StaleOption = Annotated[
    Stale,
    typer.Option(
        "--on-stale",
        help="On a table with an order column: skip rows that are older than the stored ones, or fail.",
    ),
]

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
JobBranchOption = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="Work on this branch instead of main.")
]


def batch_of(application_id: str | None, batch_id: str | None, if_unchanged_since: int | None = None) -> CommitKeywords:
    """The commit options for a batch, and for the snapshot of CP-83. One of the two names without the other is a usage
    error (CP-14)."""
    if (application_id is None) != (batch_id is None):
        raise typer.BadParameter("--application-id and --batch-id identify a batch together: pass both or neither.")
    commit: CommitKeywords = {} if application_id is None else {"application_id": application_id, "batch_id": batch_id}
    if if_unchanged_since is not None:
        commit["if_unchanged_since"] = if_unchanged_since
    return commit


def names_of(text: str | None) -> list[str] | None:
    """`a,b` as names; quotes around a name keep its commas."""
    import csv

    if text is None:
        return None
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


def names_of_all(texts: Sequence[str] | None) -> list[str]:
    """The names from all uses of a repeatable option."""
    return [name for text in texts or () for name in names_of(text) or ()]


def parse_options(options: Sequence[str], *, hint: str) -> dict[str, str]:
    """NAME=VALUE texts as a mapping; `hint` is the name of the option."""
    parsed = {}
    for option in options:
        name, separator, value = option.partition("=")
        if not (name and separator):
            raise typer.BadParameter(f"{option!r} is not NAME=VALUE.", param_hint=hint)
        parsed[name] = value
    return parsed
