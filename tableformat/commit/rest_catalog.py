"""Recognises catalogs that use Iceberg's REST protocol: their servers check the requirements of a commit themselves."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, TypeGuard

from pyiceberg.catalog import Catalog

if TYPE_CHECKING:
    from pyiceberg.catalog.rest import RestCatalog

_MODULE: Final = "pyiceberg.catalog.rest"


def is_rest(catalog: Catalog) -> TypeGuard[RestCatalog]:
    """Whether the catalog is PyIceberg's REST client. False if this process has not imported that client. Processes
    with other catalogs need not import it, nor an HTTP client."""
    # Another thread may be importing the module at the moment.
    imported = getattr(sys.modules.get(_MODULE), "RestCatalog", None)
    return imported is not None and isinstance(catalog, imported)
