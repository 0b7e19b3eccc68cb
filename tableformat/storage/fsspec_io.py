"""Which FileIO is PyIceberg's over fsspec, the second one beside pyarrow's."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, TypeGuard

from pyiceberg.io import FileIO

if TYPE_CHECKING:
    from pyiceberg.io.fsspec import FsspecFileIO

_MODULE: Final = "pyiceberg.io.fsspec"


def is_fsspec(io: FileIO) -> TypeGuard[FsspecFileIO]:
    """Whether it is such a FileIO. None is, in a process that has not imported it: it brings an HTTP client along, and
    PyIceberg imports it where a table asks for it."""
    # Another thread may be in the middle of the import.
    imported = getattr(sys.modules.get(_MODULE), "FsspecFileIO", None)
    return imported is not None and isinstance(io, imported)
