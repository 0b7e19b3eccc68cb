"""The directory of a lake, and the name of the SQLite file in it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from sqlalchemy import URL

from tableformat.errors import InvalidArgumentError, StorageError


def sqlite_uri(file: str | os.PathLike[str]) -> str:
    """SQLAlchemy's name of a SQLite file."""
    return URL.create("sqlite", database=Path(file).as_posix()).render_as_string()


def make_directory(path: str | os.PathLike[str]) -> None:
    """InvalidArgumentError for a directory that there cannot be, StorageError for one that may not be made."""
    try:
        os.makedirs(path, exist_ok=True)
    except (NotADirectoryError, FileExistsError, FileNotFoundError, ValueError) as error:
        raise InvalidArgumentError(f"{path} cannot be a directory: {error}. Name another path.") from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InvalidArgumentError(f"{path!s:.60}... cannot be a directory: {error.strerror}.") from error
        raise StorageError(f"the directory {path} cannot be made: {error}. Look at its permissions.") from error


def local_directory(directory: str | os.PathLike[str]) -> Path:
    """Its absolute path. InvalidArgumentError for one that cannot be a lake's."""
    path = Path(os.path.abspath(os.path.expanduser(directory)))
    if os.path.exists(path) and not os.path.isdir(path):
        raise InvalidArgumentError(f"{path} is a file; a catalog is a directory. Name another path.")
    if any(character in str(path) for character in "?#"):
        raise InvalidArgumentError(
            f"{path}: a catalog directory cannot have '?' or '#' in its path; locations are URIs."
        )
    return path
