"""Recognizes PyIceberg's FileIO over pyarrow, its first one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, TypeGuard

from pyiceberg.io import FileIO

if TYPE_CHECKING:
    from pyiceberg.io.pyarrow import PyArrowFileIO

_MODULE: Final = "pyiceberg.io.pyarrow"


def is_arrow(io: FileIO) -> TypeGuard[PyArrowFileIO]:
    """Whether this is PyIceberg's FileIO over pyarrow. False in a process that has not imported it. PyIceberg imports
    it for the first table. The import includes pyarrow's datasets and pandas, which an open catalog does not need."""
    # Another thread may be importing the module right now.
    imported = getattr(sys.modules.get(_MODULE), "PyArrowFileIO", None)
    return imported is not None and isinstance(io, imported)
