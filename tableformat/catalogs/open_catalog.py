"""Opens catalogs by path or by name."""

from __future__ import annotations

import os

from pyiceberg.catalog import Catalog as IcebergCatalog

from tableformat.arguments import checked_arguments
from tableformat.catalogs.backends import open_backend, reopen_backend
from tableformat.catalogs.catalog import Catalog
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.storage.file_uris import absolute_path, is_file_uri


@checked_arguments
def open_catalog(name_or_path: str | os.PathLike[str], **options: str) -> Catalog:
    """Open a catalog.

    A path (a URI, an existing path, or a text with a separator) is a directory with a SQLite catalog, which is created
    if it does not exist. A `file:` URI is decoded: `file:///my%20lake` is the directory `/my lake`. Any other text is
    the name of a catalog in PyIceberg's configuration; `options` override its properties.

    Raises CatalogNotFoundError with the configured names if it is neither.

    >>> tf.open_catalog("lake/").list_tables("db")
    ['db.calendars']
    """
    name = os.fspath(name_or_path)
    return _opened(open_backend(name, **options), name, options)


def _opened(backend: IcebergCatalog, name: str, options: dict[str, str]) -> Catalog:
    catalog = Catalog(backend)
    # Another process may have another working directory.
    is_directory = isinstance(catalog.iceberg, EmbeddedCatalog) and (is_file_uri(name) or "://" not in name)
    files = {"catalog_file": absolute_path(options["catalog_file"])} if "catalog_file" in options else {}
    catalog._opened = (absolute_path(name) if is_directory else name, {**options, **files})
    return catalog


def reopen_catalog(name: str, options: dict[str, str]) -> Catalog:
    """LK-28: open the catalog of a pickle. A lake that does not exist in this process is not created."""
    return _opened(reopen_backend(name, **options), name, options)
