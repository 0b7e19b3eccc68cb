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
from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any, Final

import typer

from tableformat.cli.commands import Command, Group
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
_SHORT_FORMATS: Final = {f"--{each.value}": each for each in OutputFormat if each is not OutputFormat.TEXT}
"""`--json` is short for `--output json`, under the name that other programs use."""
_PRINT_ROWS: Final = {
    OutputFormat.CSV: ("head", "query", "changes", "shell"),
    OutputFormat.MARKDOWN: ("head", "query", "changes", "corpus"),
    OutputFormat.NDJSON: ("head", "query", "changes"),
}
"""The commands with results in these formats."""


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
        elif argument in _SHORT_FORMATS:
            front += ["--output", _SHORT_FORMATS[argument].value]
        elif argument in _FLAGS or argument.startswith(tuple(f"{name}=" for name in _VALUED if name != "-o")):
            front.append(argument)
        else:
            rest.append(argument)
        position += 1
    return front + rest


def _is_a_file(option: str, value: str) -> bool:
    """`-o page.svg` is an option of a command, `-o json` the output format."""
    return option == "-o" and "." in value


LOOK: Final = "Look"
READ: Final = "Read"
CHANGE: Final = "Change"
MAINTAIN: Final = "Maintain"
START: Final = "Start here"
TEST: Final = "Test a reader"

_COMMANDS: Final = {
    "demo": (START, "run_demo.demo"),
    "ls": (LOOK, "tables.ls"),
    "show": (LOOK, "tables.show"),
    "history": (LOOK, "tables.history"),
    "files": (LOOK, "tables.files"),
    "deletes": (LOOK, "tables.deletes"),
    "layers": (LOOK, "layers.layers"),
    "report": (LOOK, "report.report"),
    "head": (READ, "query.head"),
    "query": (READ, "query.query"),
    "serve": (READ, "serve.serve"),
    "shell": (READ, "shell.shell"),
    "changes": (READ, "changes.changes"),
    "explain": (READ, "query.explain"),
    "partitions": (LOOK, "partitions.partitions"),
    "create": (CHANGE, "create.create"),
    "drop": (CHANGE, "catalog_tables.drop"),
    "rename": (CHANGE, "catalog_tables.rename"),
    "set-property": (CHANGE, "catalog_tables.set_property"),
    "load": (CHANGE, "load.load"),
    "apply-changes": (CHANGE, "apply_changes.apply_changes"),
    "delete-prefix": (CHANGE, "deletes.delete_prefix"),
    "delete-range": (CHANGE, "deletes.delete_range"),
    "delete-ranges": (CHANGE, "deletes.delete_ranges"),
    "alter-partitions": (CHANGE, "partitions.alter_partitions"),
    "retire": (CHANGE, "partitions.retire"),
    "restore": (CHANGE, "partitions.restore"),
    "adopt": (CHANGE, "adoption.adopt"),
    "add-files": (CHANGE, "adoption.add_files"),
    "register-table": (CHANGE, "adoption.register_table"),
    "rollback": (CHANGE, "refs.rollback"),
    "revert": (CHANGE, "undo.revert"),
    "restore-rows": (CHANGE, "undo.restore_rows"),
    "tag": (CHANGE, "refs.tag"),
    "branch": (CHANGE, "refs.branch"),
    "consumer": (CHANGE, "changes.consumer"),
    "health": (MAINTAIN, "upkeep.health"),
    "verify": (MAINTAIN, "verification.verify"),
    "maintain": (MAINTAIN, "upkeep.maintain"),
    "upkeep": (MAINTAIN, "upkeep.upkeep"),
    "compact": (MAINTAIN, "compaction.compact"),
    "convert-deletes": (MAINTAIN, "maintain.convert_deletes"),
    "apply-retention": (MAINTAIN, "maintain.apply_retention"),
    "drop-dead-deletes": (MAINTAIN, "maintain.drop_dead_deletes"),
    "merge-range-deletes": (MAINTAIN, "maintain.merge_range_deletes"),
    "compute-table-stats": (MAINTAIN, "maintain.compute_table_stats"),
    "rewrite-position-delete-files": (MAINTAIN, "maintain.rewrite_position_delete_files"),
    "rewrite-manifests": (MAINTAIN, "maintain.rewrite_manifests"),
    "advance-window": (MAINTAIN, "partitions.advance_window"),
    "publish": (MAINTAIN, "maintain.publish"),
    "expire-snapshots": (MAINTAIN, "clean_up.expire_snapshots"),
    "erase": (MAINTAIN, "erase.erase"),
    "remove-orphan-files": (MAINTAIN, "clean_up.remove_orphan_files"),
    "relocate": (MAINTAIN, "relocate.relocate"),
    "upgrade": (MAINTAIN, "upkeep.upgrade"),
    "corpus": (TEST, "corpus.app"),
}
"""Every command with its panel in `--help`, and the function below `tableformat.cli` that defines it."""


class _Commands(Mapping[str, Any]):
    """The commands by name, each made when it is first asked for: typer inspects every parameter of a command, which
    takes a millisecond for each command (decision 37)."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _command(name, *_COMMANDS[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


def _command(name: str, panel: str, home: str) -> Any:
    module, _, function = home.partition(".")
    defined = getattr(import_module(f"tableformat.cli.{module}"), function)
    of_one = defined if isinstance(defined, typer.Typer) else typer.Typer()
    # Completion of the shell is an option of the program.
    of_one._add_completion = False
    if of_one is not defined:
        of_one.command(name, cls=Command, rich_help_panel=panel)(defined)
    command = typer.main.get_command(of_one)
    command.name, command.rich_help_panel = name, panel  # type: ignore[attr-defined]
    return command


class ErrorTellingGroup(Group):
    """Reports errors in one or two sentences and ends with status 1; with `--debug`, errors are not caught."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  typer's signature
        return [*_COMMANDS]

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


class _WithoutPandas:
    """A finder of modules that hides pandas. pyarrow imports it with its datasets and its first scalar, wherever it is
    installed, which takes a quarter of the time of a command, and no command needs it (decision 37)."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("the command line does not use pandas", name=name)


def run() -> None:
    """Run the command and end the process."""
    # Numpy's linear algebra starts a thread for each core when it is imported; no command uses it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if "demo" not in sys.argv:  # PySpark has uses for pandas.
        sys.meta_path.insert(0, _WithoutPandas)
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
        typer.Option(
            "--output",
            "-o",
            metavar="FORMAT",
            help="Text, one JSON document, or rows as CSV, Markdown or a JSON object per line (ndjson). Short: --json, "
            "--csv, --markdown, --ndjson.",
        ),
    ] = OutputFormat.TEXT,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Options of every command, before or after its name."""
    printing = _PRINT_ROWS.get(output)
    if printing is not None and context.invoked_subcommand not in (None, *printing):
        raise typer.BadParameter(
            f"{output.value} is a format of {', '.join(printing)}; {context.invoked_subcommand} prints text or json.",
            param_hint="--output",
        )
    context.obj = Session(
        Output(output), catalog, parse_options(catalog_option or [], hint="--catalog-option"), is_debugging=debug
    )
