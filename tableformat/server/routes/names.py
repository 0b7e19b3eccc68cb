"""Names: a table and a view of one namespace cannot have the same one. The messages are those of Iceberg's catalogs."""

from __future__ import annotations

from typing import Final, Literal

from pyiceberg.exceptions import TableAlreadyExistsError, ViewAlreadyExistsError
from pyiceberg.typedef import Identifier

from tableformat.server.context import ServerContext

Kind = Literal["Table", "View"]
_ERRORS: Final = {"Table": TableAlreadyExistsError, "View": ViewAlreadyExistsError}


def check_free(server: ServerContext, identifier: Identifier, kind: Kind) -> None:
    """Raise an error if a table or a view has the name of a new table or view."""
    owner = _owner(server, identifier)
    if owner is not None:
        same_name = "" if owner == kind else " with same name"
        raise _ERRORS[owner](f"{owner}{same_name} already exists: {'.'.join(identifier)}")


def check_free_for(server: ServerContext, source: Identifier, destination: Identifier) -> None:
    """Raise an error if a table or a view has the new name of `source`."""
    owner = _owner(server, destination)
    if owner is not None:
        raise _ERRORS[owner](
            f"Cannot rename {'.'.join(source)} to {'.'.join(destination)}. {owner} already exists: "
            f"{'.'.join(destination)}"
        )


def _owner(server: ServerContext, identifier: Identifier) -> Kind | None:
    if server.catalog.iceberg.table_exists(identifier):
        return "Table"
    return None if server.catalog.views.load(identifier) is None else "View"
