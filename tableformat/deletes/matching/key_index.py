"""Distinct keys in which the keys of rows are looked up: by an array index if the keys are numbers in a narrow range,
otherwise by hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyiceberg.types import PrimitiveType

from tableformat.deletes.matching.key_box import KeyBox
from tableformat.deletes.matching.key_table import KeyTable

Rows = NDArray[np.int64]


class KeyIndex(Protocol):
    """Distinct keys of some columns. Immutable; thread-safe."""

    def __len__(self) -> int: ...

    @property
    def size_bytes(self) -> int:
        """Memory of the index in bytes, without the values of the keys."""

    def find(self, columns: Sequence[pa.ChunkedArray]) -> tuple[Rows, Rows]:
        """Offsets, ascending, of the rows whose values equal a key (DA-4), and the index of that key.

        `columns` are in the order of the types, each in its own type or in a type that was promoted to it, dictionary
        encoded or not. Raises pyarrow.ArrowInvalid or pyarrow.ArrowNotImplementedError for a column of another type.
        """

    def find_comparable(self, columns: Sequence[pa.ChunkedArray]) -> tuple[Rows, Rows]:
        """Like `find`, for columns that are `comparable` already."""


def index_keys(columns: Sequence[pa.ChunkedArray], types: Sequence[PrimitiveType]) -> tuple[KeyIndex, Rows, Rows]:
    """The distinct keys of rows, ascending example rows (one for each key), and the key of each row.

    `columns` are results of `comparable`, in `types`, without dictionaries. DA-4: null equals null.
    """
    return KeyBox.of(columns, types) or KeyTable.of(columns, types)
