"""Recognizes PyIceberg's FileIO over fsspec, its second FileIO beside the one over pyarrow."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, TypeGuard

from pyiceberg.io import FileIO

if TYPE_CHECKING:
    from pyiceberg.io.fsspec import FsspecFileIO

_MODULE: Final = "pyiceberg.io.fsspec"


def is_fsspec(io: FileIO) -> TypeGuard[FsspecFileIO]:
    """Whether this is PyIceberg's FileIO over fsspec. False in a process that has not imported it. It is imported only
    by PyIceberg, for tables that need it, because the import includes an HTTP client."""
    # Another thread may be importing the module right now.
    imported = getattr(sys.modules.get(_MODULE), "FsspecFileIO", None)
    return imported is not None and isinstance(io, imported)
