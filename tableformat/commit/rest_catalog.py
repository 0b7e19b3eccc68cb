"""Which catalogs are services that speak Iceberg's REST protocol: they check a commit's requirements themselves."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, TypeGuard

from pyiceberg.catalog import Catalog

if TYPE_CHECKING:
    from pyiceberg.catalog.rest import RestCatalog

_MODULE: Final = "pyiceberg.catalog.rest"


def is_rest(catalog: Catalog) -> TypeGuard[RestCatalog]:
    """Whether it is PyIceberg's REST client. Nothing is, in a process that has not imported it: other catalogs are
    spared that, and an HTTP client with it."""
    # Another thread may be in the middle of the import.
    imported = getattr(sys.modules.get(_MODULE), "RestCatalog", None)
    return imported is not None and isinstance(catalog, imported)
