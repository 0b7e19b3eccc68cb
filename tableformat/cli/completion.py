"""Shell completion of table names.

`tableformat --install-completion` installs it. typer completes commands and options.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer

from tableformat.cli.output import Output, OutputFormat
from tableformat.cli.session import DEFAULT_DIRECTORY, Session, is_path


def complete_table(context: typer.Context, incomplete: str) -> list[str]:
    """The tables of the catalog named on the command line so far. Empty if the catalog cannot be opened: the command
    will report the reason, and a message here would be mistaken for names."""
    if is_path(incomplete):
        return []
    given = {} if context.parent is None else context.parent.params
    names = None if given.get("catalog_option") else _names_in_lake(given.get("catalog"))
    if names is None:
        names = _names_of_catalog(given)
    return [name for name in names if name.startswith(incomplete)]


def _names_in_lake(catalog: str | None) -> list[str] | None:
    """The tables of a lake in a local directory, without the imports of a catalog (decision 37). None for another
    catalog: also for a name without a separator, because PyIceberg's configuration may have it."""
    import sqlite3

    from tableformat.catalogs.table_names import table_names
    from tableformat.storage.lake_file import CATALOG_FILE

    directory = Path(f"{DEFAULT_DIRECTORY}/" if catalog is None else catalog)
    file = directory / CATALOG_FILE
    if (catalog is not None and os.sep not in catalog) or not file.is_file():
        return None
    try:
        return table_names(file)
    except (sqlite3.Error, OSError):
        return None


def _names_of_catalog(given: dict[str, Any]) -> list[str]:
    from tableformat.cli.options import parse_options  # Its arguments are what is completed here.
    from tableformat.errors import TableFormatError

    options = parse_options(given.get("catalog_option") or [], hint="--catalog-option")
    session = Session(Output(OutputFormat.TEXT), given.get("catalog"), options)
    try:
        with session.catalog() as catalog:
            return catalog.list_tables()
    except (TableFormatError, OSError, ValueError):
        return []
