"""Distinct keys in which the keys of rows are looked up: by place where they lie close together, else by hash."""

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
        """Memory that it holds, the values of the keys apart."""

    def find(self, columns: Sequence[pa.ChunkedArray]) -> tuple[Rows, Rows]:
        """Offsets, rising, of the rows that have the values of a key (DA-4), and the index of that key.

        `columns` are in the order of the types, each in its own type or one that it was promoted from, encoded as
        dictionaries or not. Raises pyarrow.ArrowInvalid or pyarrow.ArrowNotImplementedError for one of another kind.
        """

    def find_comparable(self, columns: Sequence[pa.ChunkedArray]) -> tuple[Rows, Rows]:
        """The same for columns that are `comparable` already."""


def index_keys(columns: Sequence[pa.ChunkedArray], types: Sequence[PrimitiveType]) -> tuple[KeyIndex, Rows, Rows]:
    """The distinct keys among rows, for each of its keys a row that holds it, rising, and for each row its key.

    `columns` are what `comparable` gives, in `types`, without dictionaries; DA-4: null is equal to null.
    """
    return KeyBox.of(columns, types) or KeyTable.of(columns, types)
