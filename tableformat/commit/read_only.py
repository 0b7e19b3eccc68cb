"""Refuses commits to tables that were read from a metadata file."""

from __future__ import annotations

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.table import Table as IcebergTable

from tableformat.errors import UnsupportedFeatureError


def refuse_read_only(iceberg: IcebergTable) -> None:
    """Raise UnsupportedFeatureError for a table that no catalog keeps: there is nobody to commit to."""
    if type(iceberg.catalog) is NoopCatalog:
        raise UnsupportedFeatureError(
            "this table was read from its metadata file without a catalog: it is read-only. "
            "catalog.register_table() puts it into one."
        )
