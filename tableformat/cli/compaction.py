"""`compact`: the plan with its reasons, and the rewrite."""

from __future__ import annotations

import shlex
from typing import Annotated, Any, Literal

import typer

from tableformat.cli.maintain import emit_result
from tableformat.cli.options import FilesWhereOption, JobBranchOption, WritableTableArgument
from tableformat.cli.quantities import parse_size
from tableformat.cli.running import running
from tableformat.cli.session import Session

_WHAT = "What to rewrite"
_HOW = "How to run the job"
_SWITCHES = ("partial_progress", "drop_dead_deletes")
_FURTHER = ("delete_file_threshold", "max_file_group_size_bytes", "max_commits", *_SWITCHES)
"""Rarely used options, under the names of the arguments in Python."""

PlanOption = Annotated[
    bool, typer.Option("--dry-run", help="Show the plan: what would be rewritten, and why. Nothing is changed.")
]
DepthOption = Annotated[
    Literal["merge", "fold"] | None,
    typer.Option(
        help="fold: each file with many deleted rows by itself. merge (default): also small and overlapping files.",
        rich_help_panel=_WHAT,
    ),
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target-file-size",
        metavar="SIZE",
        help="Size of new files, such as 512MB; default the table's setting.",
        rich_help_panel=_WHAT,
    ),
]
MinInputOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="Minimum number of small files to merge; default 5.", rich_help_panel=_WHAT),
]
DeleteRatioOption = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Share of deleted rows from which a file is rewritten; default 0.3.",
        rich_help_panel=_WHAT,
    ),
]
RewriteAllOption = Annotated[
    bool, typer.Option("--rewrite-all", help="Rewrite every file, regardless of its state.", rich_help_panel=_WHAT)
]
SortByOption = Annotated[
    str | None,
    typer.Option(
        metavar="ORDER",
        help=(
            "Order of the rewritten rows if the table has no key: 'a, b DESC' or 'zorder(a, b)'. To sort all files, "
            "add --rewrite-all."
        ),
        rich_help_panel=_WHAT,
    ),
]
BytesOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Maximum size to read in total; groups with the largest gain come first.",
        rich_help_panel=_HOW,
    ),
]
FurtherOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help=f"Repeatable: {', '.join(_FURTHER)}.",
        rich_help_panel=_HOW,
    ),
]


def compact(
    context: typer.Context,
    table: WritableTableArgument,
    *,
    dry_run: PlanOption = False,
    branch: JobBranchOption = None,
    where: FilesWhereOption = None,
    depth: DepthOption = None,
    target_file_size_bytes: TargetOption = None,
    min_input_files: MinInputOption = None,
    delete_ratio_threshold: DeleteRatioOption = None,
    rewrite_all: RewriteAllOption = False,
    sort_by: SortByOption = None,
    max_rewritten_bytes: BytesOption = None,
    option: FurtherOption = None,
) -> None:
    """Rewrite data files if that makes reading cheaper. Rows stay the same; older snapshots keep the old files.

    Example: tableformat compact shop.orders --target-file-size 256MB --dry-run
    """
    from tableformat.maintenance.compaction.row_order import parsed_order

    given: dict[str, Any] = {
        "where": where,
        "depth": depth,
        "target_file_size_bytes": _size(target_file_size_bytes, "--target-file-size"),
        "min_input_files": min_input_files,
        "delete_ratio_threshold": delete_ratio_threshold,
        "max_rewritten_bytes": _size(max_rewritten_bytes, "--max-rewritten-bytes"),
        "rewrite_all": rewrite_all or None,
        **({} if sort_by is None else parsed_order(sort_by)),
    }
    options: Any = {name: value for name, value in given.items() if value is not None} | _further(option or [])
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    with running(session, handle, dry_run=dry_run) as progress:
        result = handle.maintenance.compact(dry_run=dry_run, progress=progress, **options)
    if not dry_run or session.output.is_json:
        emit_result(session, handle, result)
        return
    from tableformat.display.compaction_groups import render_plan

    words = f"compact {shlex.quote(handle.name)}{_as_typed(context)}"
    command = session.command(words, branch=handle.branch)
    session.output.emit(dict, lambda: render_plan(result, handle.metadata, handle.name, command))


def _size(text: str | None, option: str) -> int | None:
    return None if text is None else parse_size(text, option)


def _further(texts: list[str]) -> dict[str, Any]:
    """`--option` by name. Raises UnknownOptionError for a name that compaction does not have."""
    from tableformat.errors import InvalidArgumentError, UnknownOptionError

    values: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if name not in _FURTHER:
            raise UnknownOptionError(name, _FURTHER, where="compact --option")
        if name in _SWITCHES and value in ("true", "false"):
            values[name] = value == "true"
        elif name == "max_file_group_size_bytes":
            values[name] = parse_size(value, f"--option {name}")
        elif name not in _SWITCHES and value.isdecimal():
            values[name] = int(value)
        else:
            wanted = "true or false" if name in _SWITCHES else "a whole number"
            raise InvalidArgumentError(f"--option {name}: {value!r} is not {wanted}.")
    return values


def _as_typed(context: typer.Context) -> str:
    """The given options, except the dry run and the options that `Session.command` adds."""
    words = []
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.name in ("table", "dry_run", "branch") or value == parameter.get_default(context):
            continue
        if isinstance(value, bool):
            words.append(parameter.opts[0])
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            words += [parameter.opts[0], shlex.quote(str(each))]
    return "".join(f" {word}" for word in words)
