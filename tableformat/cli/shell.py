"""`shell`: a prompt for SQL over all tables of the catalog."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tableformat.cli.cancellation import run_cancellable
from tableformat.cli.output import Output, OutputFormat
from tableformat.cli.session import Session
from tableformat.cli.shell_commands import CANCELLED, COMMANDS, HELP
from tableformat.cli.shell_output import Mode, print_result
from tableformat.cli.sql_text import is_blank, split_statements
from tableformat.errors import InvalidArgumentError, TableFormatError, UnsupportedFeatureError, nearest_hint

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from tableformat.catalogs.catalog import Catalog


_MODES: Final = {OutputFormat.TEXT: Mode.TABLE, OutputFormat.JSON: Mode.JSON, OutputFormat.CSV: Mode.CSV}


def shell(
    context: typer.Context,
    *,
    mode: Annotated[Mode | None, typer.Option("--mode", help="How rows are printed: table, csv or json.")] = None,
) -> None:
    """Open a prompt for SQL over all tables of the catalog.

    Each statement reads the newest snapshots. Standard input that is not a terminal is run as a script, which ends at
    the first error with status 1.

    Example: tableformat shell --mode csv
    """
    from tableformat.engines.duckdb import attach_as_default
    from tableformat.storage.duckdb_connection import duckdb_connection

    session = Session.of(context)
    chosen = mode or _MODES[session.output.format]
    lines = _lines_of_a_person if sys.stdin.isatty() else _lines_of_a_script
    if sys.stdin.isatty():
        _require_prompt()
    with session.catalog() as catalog, duckdb_connection() as connection:
        attach_as_default(connection, catalog)
        opened = Shell(catalog, connection, session.output, chosen, is_interactive=sys.stdin.isatty())
        for line in lines(opened):
            if not opened.take(line):
                return
        opened.finish()


@dataclass(slots=True)
class Shell:
    """The state between two lines: the output mode, and the beginning of a statement."""

    catalog: Catalog
    connection: DuckDBPyConnection
    output: Output
    mode: Mode
    is_interactive: bool
    pending: str = ""

    def take(self, text: str) -> bool:
        """Run the statements that the text completes, or its dot command. Returns False for `.quit`."""
        if text == CANCELLED:
            self.pending = ""
            return True
        if is_blank(self.pending) and text.lstrip().startswith("."):
            self.pending = ""
            return self._guarded(text)
        statements, self.pending = split_statements(f"{self.pending}{text}\n")
        for statement in statements:
            self._guarded(statement)
        return True

    def finish(self) -> None:
        """Run the last statement of a script, which may lack its semicolon."""
        last, self.pending = self.pending, ""
        if not is_blank(last):
            self._guarded(last)

    def _guarded(self, text: str) -> bool:
        """Run a statement or a dot command. At a prompt, errors are printed; Ctrl-C cancels the statement."""
        import duckdb

        try:
            return run_cancellable(self.connection, lambda: self._run(text))
        except KeyboardInterrupt:
            if not self.is_interactive:
                raise
            self.output.note("Cancelled.")
        except (duckdb.Error, TableFormatError, OSError, MemoryError) as error:
            if not self.is_interactive:
                raise _script_error(error) from error
            # DuckDB's message has an excerpt of the SQL text, with a pointer to the mistake.
            self.output.error(error, str(error))
        return True

    def _run(self, text: str) -> bool:
        from tableformat.cli.sql_run import run_sql
        from tableformat.engines.duckdb import refresh

        if text.lstrip().startswith("."):
            return self._command(text.split())
        if is_blank(text):
            return True
        refresh(self.connection)
        result = run_sql(self.connection, text, None)
        if result is not None:
            print_result(self.output, result, self.mode, is_paged=self.is_interactive)
        return True

    def _command(self, words: list[str]) -> bool:
        match words:
            case [".quit" | ".exit"]:
                return False
            case [".help"]:
                self.output.write(HELP)
            case [".tables"]:
                self.output.write(*(f"{name}\n" for name in self.catalog.list_tables()))
            case [".schema", table]:
                self.output.write(*_columns(self.catalog, table))
            case [".mode", name] if name in list(Mode):
                self.mode = Mode(name)
            case [".mode", *_]:
                raise InvalidArgumentError(f".mode takes one of {', '.join(Mode)}.")
            case [".schema", *_]:
                raise InvalidArgumentError(".schema takes the name of a table, such as db.t.")
            case _:
                near = nearest_hint(words[0], COMMANDS)
                raise InvalidArgumentError(f"no command {words[0]!r}.{near} .help lists them.")
        return True


class ScriptFailedError(InvalidArgumentError):
    """DuckDB could not run a statement of standard input."""


def _script_error(error: BaseException) -> BaseException:
    """An error of DuckDB, of a kind that the command line reports without a traceback."""
    return error if isinstance(error, (TableFormatError, OSError)) else ScriptFailedError(str(error))


def _columns(catalog: Catalog, name: str) -> Iterator[str]:
    """Name, type and key position of each column."""
    table = catalog.load_table(name)
    fields = table.metadata.schema().fields
    width = max((len(field.name) for field in fields), default=0)
    for field in fields:
        required = " required" if field.required else ""
        key = f" key {table.key.index(field.name) + 1}" if field.name in table.key else ""
        yield f"{field.name:{width}}  {field.field_type}{required}{key}\n"


def _lines_of_a_script(_shell: Shell) -> Iterable[str]:
    return (line.rstrip("\n") for line in sys.stdin)


def _lines_of_a_person(opened: Shell) -> Iterable[str]:
    from tableformat.cli.shell_prompt import prompted

    return prompted(opened.connection, opened.output, lambda: opened.pending)


def _require_prompt() -> None:
    from importlib.util import find_spec

    if find_spec("prompt_toolkit") is None:
        raise UnsupportedFeatureError(
            "the prompt needs prompt_toolkit, which is not installed: pip install 'tableformat[shell]'. SQL from a "
            "file or a pipe needs no extra, as in `tableformat shell < statements.sql`."
        )
