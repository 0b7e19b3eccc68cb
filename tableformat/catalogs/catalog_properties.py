"""Catalog properties that set defaults and overrides for new tables and views, under Iceberg's names (SP-65)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TABLE: Final = "table"
VIEW: Final = "view"


def properties_of_new(kind: str, catalog: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """SP-65: the properties of a new table or view. Given properties replace the catalog's defaults, and the catalog's
    overrides replace both.

    `catalog` has the catalog's properties, such as `table-default.write.parquet.compression-codec`; a service may send
    some of them.
    """
    return {**_behind(f"{kind}-default.", catalog), **given, **_behind(f"{kind}-override.", catalog)}


def _behind(prefix: str, properties: Mapping[str, str]) -> dict[str, str]:
    return {name[len(prefix) :]: value for name, value in properties.items() if name.startswith(prefix)}
