"""Shell completion of table names.

`tableformat --install-completion` installs it. typer completes commands and options.
"""

from __future__ import annotations

import typer

from tableformat.cli.output import Output, OutputFormat
from tableformat.cli.session import Session, is_path


def complete_table(context: typer.Context, incomplete: str) -> list[str]:
    """The tables of the catalog named on the command line so far. Empty if the catalog cannot be opened: the command
    will report the reason, and a message here would be mistaken for names."""
    from tableformat.cli.options import parse_options  # Its arguments are what is completed here.
    from tableformat.errors import TableFormatError

    if is_path(incomplete):
        return []
    given = {} if context.parent is None else context.parent.params
    options = parse_options(given.get("catalog_option") or [], hint="--catalog-option")
    session = Session(Output(OutputFormat.TEXT), given.get("catalog"), options)
    try:
        with session.catalog() as catalog:
            return [name for name in catalog.list_tables() if name.startswith(incomplete)]
    except (TableFormatError, OSError, ValueError):
        return []
