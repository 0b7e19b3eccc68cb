"""The directory of a lake, and the name of the SQLite file in it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from sqlalchemy import URL

from tableformat.errors import InvalidArgumentError, StorageError
from tableformat.storage.lake_file import CATALOG_FILE


def sqlite_uri(file: str | os.PathLike[str]) -> str:
    """SQLAlchemy's URI of a SQLite file."""
    return URL.create("sqlite", database=Path(file).as_posix()).render_as_string()


def make_directory(path: str | os.PathLike[str]) -> None:
    """Raises InvalidArgumentError for a path that cannot be a directory, StorageError if creating it is not allowed."""
    try:
        os.makedirs(path, exist_ok=True)
    except (NotADirectoryError, FileExistsError, FileNotFoundError, ValueError) as error:
        raise InvalidArgumentError(f"{path} cannot be a directory: {error}. Use another path.") from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InvalidArgumentError(f"{path!s:.60}... cannot be a directory: {error.strerror}.") from error
        raise StorageError(f"cannot create the directory {path}: {error}. Check its permissions.") from error


def local_directory(directory: str | os.PathLike[str]) -> Path:
    """The absolute path of a directory. Raises InvalidArgumentError if it cannot be a lake's."""
    path = Path(os.path.abspath(os.path.expanduser(directory)))
    if os.path.exists(path) and not os.path.isdir(path):
        name = str(path.parent) if path.name == CATALOG_FILE else "another path"
        raise InvalidArgumentError(f"{path} is a file, but a catalog is a directory. Use {name}.")
    if any(character in str(path) for character in "?#"):
        raise InvalidArgumentError(
            f"{path}: the path of a catalog directory cannot contain '?' or '#', because locations are URIs."
        )
    return path


def is_table_directory(path: Path) -> bool:
    """Whether the directory has metadata files of a table; False for a path that cannot be a directory."""
    folder = path / "metadata"
    return os.path.isdir(folder) and any(folder.glob("*.metadata.json*"))


def refuse_table_directory(path: Path) -> None:
    """Raises InvalidArgumentError for the directory of one table: a new catalog there would be empty."""
    if os.path.exists(path / CATALOG_FILE) or not is_table_directory(path):
        return
    lake = next((parent for parent in path.parents if os.path.isfile(parent / CATALOG_FILE)), None)
    elsewhere = "open a catalog in another directory and call register_table() there"
    place = f"open its catalog, {lake}" if lake else elsewhere
    raise InvalidArgumentError(
        f"{path} is the directory of a table, but a catalog is a directory of tables. To read the table without a "
        f"catalog, call read_metadata(). To change it, {place}."
    )
