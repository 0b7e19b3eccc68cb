"""The dot commands of the shell."""

from __future__ import annotations

from typing import Final

COMMANDS: Final = {
    ".tables": "list the tables",
    ".schema": "TABLE: show the columns of a table",
    ".mode": "MODE: print rows as table, csv or json",
    ".help": "show this text",
    ".quit": "leave; so does Ctrl-D",
}
HELP: Final = "SELECT ... ;  run SQL of DuckDB; a statement may have several lines\n" + "".join(
    f"{name:12}  {text}\n" for name, text in COMMANDS.items()
)
CANCELLED: Final = "\x03"
"""Stands for a line that Ctrl-C ended."""
