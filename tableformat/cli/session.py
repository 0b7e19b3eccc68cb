"""The global options of every command, and the catalog and table that they name."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from tableformat.cli.output import Output

if TYPE_CHECKING:
    from tableformat.catalogs.catalog import Catalog
    from tableformat.metadata.snapshot_view import SnapshotView
    from tableformat.table import Table

CATALOG_VARIABLE: Final = "TABLEFORMAT_CATALOG"
DEFAULT_DIRECTORY: Final = "lake"
_DEFAULT_NAME: Final = "default"
_METADATA_SUFFIXES: Final = (".json", ".json.gz")


@dataclass(frozen=True, slots=True)
class Session:
    """The global options of one run."""

    output: Output
    catalog_name: str | None
    """The value of `--catalog` or of the environment variable; None for the default."""
    catalog_options: Mapping[str, str] = field(default_factory=dict)
    is_debugging: bool = False
    """Whether errors show their traceback."""

    @classmethod
    def of(cls, context: typer.Context) -> Session:
        """The session that the main callback made."""
        session = context.find_object(cls)
        assert session is not None, "commands run under the main callback"
        return session

    def catalog(self, *, makes_lake: bool = False) -> Catalog:
        """Open the catalog. A missing catalog is created only with `makes_lake`, in the named directory or in the
        default one. Otherwise CatalogNotFoundError is raised, with advice."""
        from tableformat import open_catalog

        if makes_lake:
            name = self.catalog_name or f"{DEFAULT_DIRECTORY}/"
            return open_catalog(name, **self.catalog_options)
        name = self.catalog_name or _default_catalog()
        _require_existing(name, self.catalog_options)
        return open_catalog(name, **self.catalog_options)

    def command(self, words: str, *, branch: str) -> str:
        """A command for the same catalog and branch, ready to paste."""
        is_named = self.catalog_name is not None and os.environ.get(CATALOG_VARIABLE) != self.catalog_name
        catalog = f" --catalog {shlex.quote(self.catalog_name or '')}" if is_named else ""
        return f"tableformat{catalog} {words}" + (f" --branch {shlex.quote(branch)}" if branch != "main" else "")

    def table(self, name: str, branch: str | None = None) -> Table:
        """A table to read: an identifier of the catalog, or the path of a metadata file or table directory."""
        from tableformat import Table, read_metadata

        branch = branch or "main"
        if is_path(name):
            return Table(read_metadata(name, **self.catalog_options).iceberg, branch=branch)
        return _load(self.catalog(), name, branch)

    def writable_table(self, name: str, branch: str | None = None) -> Table:
        """A table to change, which has to be in the catalog. Raises UnsupportedFeatureError for a path."""
        from tableformat.errors import UnsupportedFeatureError

        if is_path(name):
            raise UnsupportedFeatureError(
                f"{name} is a path, and tables that are read from their files are read-only. Pass a table of the "
                "catalog, such as db.t; `tableformat register-table` adds a table to a catalog."
            )
        return _load(self.catalog(), name, branch or "main")


def view_of(
    table: Table,
    *,
    snapshot_id: int | None = None,
    as_of: str | None = None,
    tag: str | None = None,
    branch: str | None = None,
) -> SnapshotView:
    """The snapshot selected by the time travel options, on a table that was loaded at `branch`.

    A time without a zone is local time, as in the output of the command line.
    """
    from tableformat.errors import InvalidArgumentError

    if branch is not None and (snapshot_id is not None or tag is not None):
        raise InvalidArgumentError(
            "--branch can only be combined with --as-of: --snapshot and --tag already select a snapshot."
        )
    given = [
        name for name, value in (("--snapshot", snapshot_id), ("--as-of", as_of), ("--tag", tag)) if value is not None
    ]
    if len(given) > 1:
        raise InvalidArgumentError(f"pass only one of {', '.join(given)}: each chooses a snapshot.")
    return table.at(snapshot_id=snapshot_id, as_of=None if as_of is None else local_ms(as_of), tag=tag)


def local_ms(moment: str) -> int:
    """Milliseconds since 1970 for ISO 8601 text, in local time if it has no zone."""
    from datetime import datetime

    from tableformat.errors import InvalidArgumentError

    try:
        return int(datetime.fromisoformat(moment).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise InvalidArgumentError(
            f"{moment!r} is not a time: write ISO 8601, such as 2026-01-31 or 2026-01-31T12:00:00.123+01:00."
        ) from error


def is_path(name: str) -> bool:
    """Whether a table argument is a path rather than an identifier."""
    separators = [separator for separator in (os.sep, os.altsep) if separator]
    return (
        any(separator in name for separator in separators)
        or name.endswith(_METADATA_SUFFIXES)
        or ("." not in name.strip(".") and Path(name, "metadata").is_dir())
    )


def _load(catalog: Catalog, name: str, branch: str) -> Table:
    """Load a table. A name without a namespace also raises TableNotFoundError, with the tables of that name."""
    from tableformat.errors import TableNotFoundError

    if "." in name:
        return catalog.load_table(name, branch=branch)
    meant = [table for table in catalog.list_tables() if table.rpartition(".")[2] == name]
    hint = f" Did you mean {' or '.join(meant)}?" if meant else " `tableformat ls` lists the tables."
    raise TableNotFoundError(f"no table {name!r}: include the namespace, as in db.t.{hint}")


def _default_catalog() -> str:
    """`lake/` if it is a catalog, then the catalog `default` in PyIceberg's configuration."""
    from pyiceberg.catalog import list_catalogs

    from tableformat.errors import CatalogNotFoundError

    if _holds_catalog(Path(DEFAULT_DIRECTORY)):
        return f"{DEFAULT_DIRECTORY}/"
    configured = list_catalogs()
    if _DEFAULT_NAME in configured:
        return _DEFAULT_NAME
    raise CatalogNotFoundError(
        f"no catalog was given, and {DEFAULT_DIRECTORY}/ does not contain one. Pass a directory or one of "
        f"PyIceberg's configured catalogs ({', '.join(configured) or 'none here'}) with --catalog or "
        f"{CATALOG_VARIABLE}. `tableformat demo` creates an example table."
    )


def _require_existing(name: str, options: Mapping[str, str]) -> None:
    """A mistyped directory is an error, not a new empty catalog. `open_catalog` checks names and other locations."""
    from pyiceberg.catalog import list_catalogs

    from tableformat.catalogs.lake_directory import refuse_table_directory
    from tableformat.errors import CatalogNotFoundError
    from tableformat.storage.file_uris import is_file_uri, path_of_file_uri
    from tableformat.storage.lake_file import CATALOG_FILE

    path = path_of_file_uri(name) if is_file_uri(name) else name
    is_directory = path != name or os.sep in path or Path(path).exists()
    if name.lower() in list_catalogs() or options or "://" in path or not is_directory:
        return
    directory = Path(path).expanduser()
    if not directory.is_file() and not _holds_catalog(directory):
        refuse_table_directory(directory.absolute())
        missing = (
            f"{directory} has no {CATALOG_FILE}" if directory.is_dir() else f"the directory {directory} does not exist"
        )
        raise CatalogNotFoundError(
            f"no catalog at {name!r}: {missing}. To create a catalog with a table, use `tableformat create "
            f"--parents`. To create an empty one, call tableformat.open_catalog({name!r}) in Python."
        )


def _holds_catalog(directory: Path) -> bool:
    from tableformat.storage.lake_file import CATALOG_FILE

    return (directory / CATALOG_FILE).is_file()
