"""The prompt of the shell: editing over several lines, history and completion."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import FileHistory

from tableformat.cli.output import Output
from tableformat.cli.shell_commands import CANCELLED, COMMANDS
from tableformat.engines.listed_tables import LISTED_TABLES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_PROMPT: Final = "tableformat> "
_CONTINUED: Final = "        ...> "
_WORD: Final = re.compile(r'([\w."$]+)')
_COLUMNS: Final = """
    SELECT schema_name || '.' || table_name, column_name FROM duckdb_columns()
    WHERE database_name = current_database() AND NOT internal ORDER BY column_index"""


def prompted(connection: DuckDBPyConnection, output: Output, pending: Callable[[], str]) -> Iterator[str]:
    """The lines that a person enters, until Ctrl-D. Ctrl-C discards the line, and the statement that it continues."""
    completer = WordCompleter(Words(connection), ignore_case=True, pattern=_WORD)
    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(history_file())), completer=completer, complete_while_typing=False
    )
    output.note("SQL ends with a semicolon; .help lists commands, Ctrl-D leaves.")
    while True:
        try:
            yield session.prompt(_CONTINUED if pending().strip() else _PROMPT)
        except KeyboardInterrupt:
            yield CANCELLED
        except EOFError:
            return


class Words:
    """The words that complete the line: dot commands, or columns, tables and keywords."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self._connection = connection
        self._keywords = [row[0].upper() for row in self._rows("SELECT keyword_name FROM duckdb_keywords() ORDER BY 1")]

    def __call__(self) -> list[str]:
        """Columns of the tables that the line names, or of all tables, come first."""
        return self.of_line(str(get_app().current_buffer.text))

    def of_line(self, line: str) -> list[str]:
        if line.startswith(".") and " " not in line:
            return list(COMMANDS)
        tables = [row[0] for row in self._rows(LISTED_TABLES)]
        columns = self._rows(_COLUMNS)
        named = {table for table, _ in columns if table in line}
        chosen = [column for table, column in columns if not named or table in named]
        return list(dict.fromkeys([*chosen, *tables, *self._keywords]))

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.sql(sql).fetchall()


def history_file() -> Path:
    """The file of the history, in the user's directory for state. Only the user can read it, because statements contain
    values."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    directory = Path(state, "tableformat")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = directory / "shell_history"
    os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
    file.chmod(0o600)
    return file
