"""The command line: global options, the commands, and error reports.

No large package is imported before a command runs, so that `--help` and completion are fast.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import re
import sys
from collections.abc import Collection
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from tableformat.cli import (
    adoption,
    apply_changes,
    catalog_tables,
    changes,
    clean_up,
    compaction,
    corpus,
    create,
    deletes,
    erase,
    layers,
    load,
    maintain,
    partitions,
    query,
    refs,
    relocate,
    report,
    run_demo,
    serve,
    tables,
    undo,
    upkeep,
    verification,
)
from tableformat.cli.options import parse_options
from tableformat.cli.output import Output, OutputFormat
from tableformat.cli.running import INTERRUPTED
from tableformat.cli.session import CATALOG_VARIABLE, Session
from tableformat.errors import CommitExitError, CommitInterruptedError

_VALUED: Final = ("--catalog", "--catalog-option", "--output", "-o")
_FLAGS: Final = ("--debug",)
_COLLECTED_AFTER: Final = 200_000
"""New objects before a garbage collection. Most objects of a command belong to the modules that it imports (decision
37)."""
_JSON: Final = "--json"
"""Short for `--output json`, under the name that other programs use."""


def globals_first(arguments: list[str]) -> list[str]:
    """The arguments with the global options moved to the front, because they may also follow the command."""
    front: list[str] = []
    rest: list[str] = []
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        if argument == "--":
            rest += arguments[position:]
            break
        if argument in _VALUED and position + 1 < len(arguments) and not _is_a_file(argument, arguments[position + 1]):
            front += arguments[position : position + 2]
            position += 1
        elif argument == _JSON:
            front += ["--output", "json"]
        elif argument in _FLAGS or argument.startswith(tuple(f"{name}=" for name in _VALUED if name != "-o")):
            front.append(argument)
        else:
            rest.append(argument)
        position += 1
    return front + rest


def _is_a_file(option: str, value: str) -> bool:
    """`-o page.svg` is an option of a command, `-o json` the output format."""
    return option == "-o" and "." in value


class ErrorTellingGroup(TyperGroup):
    """Reports errors in one or two sentences and ends with status 1; with `--debug`, errors are not caught."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        open_closed_streams()
        try:
            return super().parse_args(ctx, globals_first(args))
        except OSError as error:
            # An error of --help or --version, which print before a session exists.
            if _is_of_the_command_line(error):
                raise
            sys.stderr.write(f"Error: {error}\n")
            raise typer.Exit(1) from error

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, with each paragraph of its help on one line, so that lines are wrapped for the screen."""
        command = super().get_command(ctx, cmd_name)
        if command is not None and command.help:
            command.help = "\n\n".join(" ".join(each.split()) for each in command.help.split("\n\n"))
        return command

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except CommitInterruptedError as interrupt:
            tell(ctx.obj.output, interrupt)
            raise typer.Exit(INTERRUPTED) from interrupt
        except CommitExitError as ended:
            tell(ctx.obj.output, ended)
            raise typer.Exit(ended.status) from ended
        except KeyboardInterrupt as interrupt:
            if ctx.obj is None or ctx.obj.is_debugging:
                raise
            ctx.obj.output.error(interrupt, "interrupted.")
            raise typer.Exit(INTERRUPTED) from interrupt
        except Exception as error:
            if ctx.obj is None or ctx.obj.is_debugging or _is_of_the_command_line(error):
                raise
            tell(ctx.obj.output, error, self._options_of(ctx))
            raise typer.Exit(1) from error

    def _options_of(self, ctx: Any) -> set[str]:
        """The options of the called command."""
        command = self.get_command(ctx, ctx.invoked_subcommand) if ctx.invoked_subcommand else None
        return {name for each in command.params for name in each.opts} if command is not None else set()


def open_closed_streams() -> None:
    """Open the null device for standard streams that the caller has closed (`>&-`). Otherwise the next opened file
    would get their number, and the output."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # The new descriptor gets the lowest free number, which is this one.
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))


def tell(output: Output, error: BaseException, options: Collection[str] = ()) -> None:
    """Report why the command failed. Arguments in Python are replaced by the command's options of that name. An
    unexpected error is reported as such, with the option that shows its traceback."""

    def as_option(argument: re.Match[str]) -> str:
        option = f"--{argument[1].replace('_', '-')}"
        return option if option in options else argument[0]

    message = re.sub(r"\b(\w+)=True\b", as_option, str(error) or type(error).__name__)
    if not _is_foreseen(error):
        message = f"unexpected {type(error).__name__}: {message.rstrip('.')}. Run again with --debug for the traceback."
    output.error(error, message)


def _is_foreseen(error: BaseException) -> bool:
    """Whether the error is one of this library, of the file system, or of the catalog's service or database."""
    packages = {base.__module__.partition(".")[0] for base in type(error).__mro__}
    return isinstance(error, OSError) or bool(packages & {"tableformat", "pyiceberg", "sqlalchemy"})


def _is_of_the_command_line(error: Exception) -> bool:
    """Whether typer handles the error itself: usage errors, and a reader that closed the pipe."""
    if isinstance(error, OSError):
        return error.errno == errno.EPIPE
    return type(error).__module__.startswith(("typer.", "click."))


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        sys.stdout.write(f"tableformat {version('tableformat')}\n")
        raise typer.Exit


app = typer.Typer(
    name="tableformat",
    cls=ErrorTellingGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Iceberg tables with range deletes: inspect, query, delete from and maintain them.",
)


def run() -> None:
    """Run the command and end the process."""
    gc.set_threshold(_COLLECTED_AFTER, *gc.get_threshold()[1:])
    atexit.register(_end_quickly)
    app(prog_name="tableformat")


def _end_quickly() -> None:
    """Skip garbage collection at exit: the interpreter would search all modules several times, for nothing (decision
    37). Not for DuckDB, which complains about its remaining objects."""
    if "duckdb" not in sys.modules:
        gc.freeze()


@app.callback()
def main(
    context: typer.Context,
    *,
    catalog: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|NAME",
            envvar=CATALOG_VARIABLE,
            help="A catalog directory, or a catalog of PyIceberg's configuration. Default: lake/, then 'default'.",
        ),
    ] = None,
    catalog_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="A property of the catalog or its files, such as s3.endpoint. Repeatable."
        ),
    ] = None,
    output: Annotated[
        OutputFormat,
        typer.Option("--output", "-o", help="Text, or one JSON document on stdout; --json is short for the latter."),
    ] = OutputFormat.TEXT,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Options of every command, before or after its name."""
    context.obj = Session(
        Output(output), catalog, parse_options(catalog_option or [], hint="--catalog-option"), is_debugging=debug
    )


LOOK: Final = "Look"
READ: Final = "Read"
CHANGE: Final = "Change"
MAINTAIN: Final = "Maintain"
START: Final = "Start here"
TEST: Final = "Test a reader"

app.command("demo", rich_help_panel=START)(run_demo.demo)
app.command("ls", rich_help_panel=LOOK)(tables.ls)
app.command("show", rich_help_panel=LOOK)(tables.show)
app.command("history", rich_help_panel=LOOK)(tables.history)
app.command("files", rich_help_panel=LOOK)(tables.files)
app.command("deletes", rich_help_panel=LOOK)(tables.deletes)
app.command("layers", rich_help_panel=LOOK)(layers.layers)
app.command("report", rich_help_panel=LOOK)(report.report)
app.command("head", rich_help_panel=READ)(query.head)
app.command("query", rich_help_panel=READ)(query.query)
app.command("serve", rich_help_panel=READ)(serve.serve)
app.command("changes", rich_help_panel=READ)(changes.changes)
app.command("explain", rich_help_panel=READ)(query.explain)
app.command("partitions", rich_help_panel=LOOK)(partitions.partitions)
app.command("create", rich_help_panel=CHANGE)(create.create)
app.command("drop", rich_help_panel=CHANGE)(catalog_tables.drop)
app.command("rename", rich_help_panel=CHANGE)(catalog_tables.rename)
app.command("set-property", rich_help_panel=CHANGE)(catalog_tables.set_property)
app.command("load", rich_help_panel=CHANGE)(load.load)
app.command("apply-changes", rich_help_panel=CHANGE)(apply_changes.apply_changes)
app.command("delete-prefix", rich_help_panel=CHANGE)(deletes.delete_prefix)
app.command("delete-range", rich_help_panel=CHANGE)(deletes.delete_range)
app.command("delete-ranges", rich_help_panel=CHANGE)(deletes.delete_ranges)
app.command("alter-partitions", rich_help_panel=CHANGE)(partitions.alter_partitions)
app.command("retire", rich_help_panel=CHANGE)(partitions.retire)
app.command("restore", rich_help_panel=CHANGE)(partitions.restore)
app.command("adopt", rich_help_panel=CHANGE)(adoption.adopt)
app.command("add-files", rich_help_panel=CHANGE)(adoption.add_files)
app.command("register-table", rich_help_panel=CHANGE)(adoption.register_table)
app.command("rollback", rich_help_panel=CHANGE)(refs.rollback)
app.command("revert", rich_help_panel=CHANGE)(undo.revert)
app.command("restore-rows", rich_help_panel=CHANGE)(undo.restore_rows)
app.command("tag", rich_help_panel=CHANGE)(refs.tag)
app.command("branch", rich_help_panel=CHANGE)(refs.branch)
app.command("consumer", rich_help_panel=CHANGE)(changes.consumer)
app.command("health", rich_help_panel=MAINTAIN)(upkeep.health)
app.command("verify", rich_help_panel=MAINTAIN)(verification.verify)
app.command("maintain", rich_help_panel=MAINTAIN)(upkeep.maintain)
app.command("upkeep", rich_help_panel=MAINTAIN)(upkeep.upkeep)
app.command("compact", rich_help_panel=MAINTAIN)(compaction.compact)
app.command("convert-deletes", rich_help_panel=MAINTAIN)(maintain.convert_deletes)
app.command("apply-retention", rich_help_panel=MAINTAIN)(maintain.apply_retention)
app.command("drop-dead-deletes", rich_help_panel=MAINTAIN)(maintain.drop_dead_deletes)
app.command("merge-range-deletes", rich_help_panel=MAINTAIN)(maintain.merge_range_deletes)
app.command("compute-table-stats", rich_help_panel=MAINTAIN)(maintain.compute_table_stats)
app.command("rewrite-position-delete-files", rich_help_panel=MAINTAIN)(maintain.rewrite_position_delete_files)
app.command("rewrite-manifests", rich_help_panel=MAINTAIN)(maintain.rewrite_manifests)
app.command("advance-window", rich_help_panel=MAINTAIN)(partitions.advance_window)
app.command("publish", rich_help_panel=MAINTAIN)(maintain.publish)
app.command("expire-snapshots", rich_help_panel=MAINTAIN)(clean_up.expire_snapshots)
app.command("remove-orphan-files", rich_help_panel=MAINTAIN)(clean_up.remove_orphan_files)
app.command("erase", rich_help_panel=MAINTAIN)(erase.erase)
app.command("relocate", rich_help_panel=MAINTAIN)(relocate.relocate)
app.command("upgrade", rich_help_panel=MAINTAIN)(upkeep.upgrade)
app.add_typer(corpus.app, name="corpus", rich_help_panel=TEST)
