"""Opens the PyIceberg catalog for a path or a configured name."""

from __future__ import annotations

import os
import re
from typing import Final

from pyiceberg.catalog import Catalog, list_catalogs, load_catalog
from pyiceberg.exceptions import NotInstalledError, RESTError
from sqlalchemy.exc import SQLAlchemyError

from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.catalogs.lake_directory import make_directory, sqlite_uri
from tableformat.catalogs.unreachable import unreachable
from tableformat.errors import (
    CatalogNotFoundError,
    InvalidArgumentError,
    UnknownOptionError,
    UnsupportedFeatureError,
    nearest_hint,
)
from tableformat.storage.file_uris import absolute_path, is_file_uri, path_of_file_uri

_SCHEME: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+)://", re.IGNORECASE)
_OBJECT_STORES: Final = frozenset(
    {"s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "wasb", "wasbs", "oss", "hdfs", "viewfs", "hf", "memory"}
)
_PATH_OPTIONS: Final = ("catalog_file", "uri", "py-io-impl")
"""Options that are allowed for a path, besides the options of the FileIO, which have a dot in their name
(`s3.endpoint`)."""
_DEFINING_OPTIONS: Final = frozenset({"uri", "type", "py-catalog-impl"})


def open_backend(name_or_path: str | os.PathLike[str], **options: str) -> Catalog:
    """The catalog for a name in PyIceberg's configuration, or for a path.

    The first rule that applies decides:

    1. A name in PyIceberg's configuration is that catalog.
    2. A name with `type=` or `py-catalog-impl=` is a catalog defined by the options, even if a directory has this name.
    3. A path (text with a separator, a URI, or an existing path) is an EmbeddedCatalog in that directory, created if it
    does not exist. In an object store, `catalog_file=` is the path of the SQLite file on this machine.
    4. A new name with `uri=` is a catalog defined by the options.

    Anything else raises CatalogNotFoundError.
    """
    return _open(name_or_path, options)


def reopen_backend(name_or_path: str, **options: str) -> Catalog:
    """LK-28: like `open_backend`, for a catalog that existed before. If the SQLite file of a lake is missing, every
    call raises StorageError, and nothing is created."""
    return _open(name_or_path, options, must_exist=True)


def _open(name_or_path: str | os.PathLike[str], options: dict[str, str], *, must_exist: bool = False) -> Catalog:
    text = os.fspath(name_or_path)
    if not text:
        raise InvalidArgumentError(
            "open_catalog needs a directory or the name of a configured catalog, not empty text."
        )
    configured = list_catalogs()
    if isinstance(name_or_path, str) and text.lower() in configured:
        return _load_configured(text, options)
    if is_file_uri(text):
        return _open_directory(path_of_file_uri(text), options, must_exist=must_exist)
    scheme = _SCHEME.match(text)
    if scheme is not None:
        return _open_uri(text, scheme["scheme"].lower(), options, must_exist=must_exist)
    if isinstance(name_or_path, str) and {"type", "py-catalog-impl"} & options.keys() and os.sep not in text:
        return _load_configured(text, options)
    if not isinstance(name_or_path, str) or _looks_like_path(text):
        return _open_directory(text, options, must_exist=must_exist)
    if _DEFINING_OPTIONS & options.keys():
        return _load_configured(text, options)
    raise CatalogNotFoundError(
        f"no catalog {text!r} in PyIceberg's configuration, and no such directory.{nearest_hint(text, configured)} "
        f"To create a catalog in a directory, write the path with a separator: {'./' + text!r}."
    )


def _load_configured(name: str, options: dict[str, str]) -> Catalog:
    """Raises InvalidArgumentError for options that do not define a catalog, UnsupportedFeatureError if a package is
    missing, and StorageError if the service or the database cannot be reached."""
    try:
        return load_catalog(name, **options)
    except (NotInstalledError, ImportError) as error:
        raise UnsupportedFeatureError(
            f"catalog {name!r} needs a package that is not installed: {error}. Install it and open the catalog again."
        ) from error
    except (OSError, RESTError, SQLAlchemyError) as error:
        raise unreachable(name, error) from error
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidArgumentError(f"the options of catalog {name!r} do not define a catalog: {error}.") from error


def _looks_like_path(text: str) -> bool:
    separators = [separator for separator in (os.sep, os.altsep) if separator]
    return any(separator in text for separator in separators) or os.path.exists(text)


def _open_uri(uri: str, scheme: str, options: dict[str, str], *, must_exist: bool) -> EmbeddedCatalog:
    if scheme not in _OBJECT_STORES:
        raise InvalidArgumentError(
            f"{uri!r} is neither a directory nor an object store. For a catalog service, pass a name and the "
            f'address: open_catalog("prod", uri={uri!r}).'
        )
    _check_path_options(options)
    if "catalog_file" not in options and "uri" not in options:
        raise InvalidArgumentError(
            f"a catalog with its tables under {uri!r} needs a path for its SQLite file on this machine: pass "
            "catalog_file='path/to/catalog.db'. If several machines write, use a catalog service instead."
        )
    engine_options = _engine_options(options, must_exist=must_exist)
    return EmbeddedCatalog(must_exist=must_exist, **engine_options, warehouse=uri.rstrip("/"))


def _open_directory(directory: str, options: dict[str, str], *, must_exist: bool) -> EmbeddedCatalog:
    _check_path_options(options)
    return EmbeddedCatalog.at(directory, must_exist=must_exist, **_engine_options(options, must_exist=must_exist))


def _engine_options(options: dict[str, str], *, must_exist: bool) -> dict[str, str]:
    """Replace `catalog_file` by the database URI; keep the other options."""
    if "catalog_file" not in options:
        return options
    if "uri" in options:
        raise InvalidArgumentError(
            "catalog_file and uri both set the location of the catalog's database. Pass only one of them."
        )
    file = absolute_path(options["catalog_file"])
    if not must_exist:
        make_directory(os.path.dirname(file))
    return {**{name: value for name, value in options.items() if name != "catalog_file"}, "uri": sqlite_uri(file)}


def _check_path_options(options: dict[str, str]) -> None:
    for name in options:
        if name not in _PATH_OPTIONS and "." not in name:
            raise UnknownOptionError(name, _PATH_OPTIONS, where="open_catalog of a path")
