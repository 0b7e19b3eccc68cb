"""Codes of the operation column of change events, and their effects (CF-12)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.errors import InvalidArgumentError

UPSERTS: Final = (
    *("I", "INSERT", "C", "CREATE", "R", "READ", "U", "UPDATE", "UPDATE_AFTER", "UPSERT"),
    *("UPDATE_POSTIMAGE", "+I", "+U"),
)
"""After the event, its row is in the table."""
BEFORE_IMAGES: Final = ("UPDATE_BEFORE", "UPDATE_PREIMAGE", "-U")
"""An update may change the key: the row image before it deletes that row, and the image after it follows."""
DELETES: Final = ("D", "DELETE", "-D", *BEFORE_IMAGES)
"""After the event, no row with its key is in the table."""
TRUNCATES: Final = ("T", "TRUNCATE")
"""After the event, the table is empty."""
_KNOWN: Final = (*UPSERTS, *DELETES, *TRUNCATES)


class Change(IntEnum):
    """The kinds of events."""

    UPSERT = 0
    DELETE = 1
    BEFORE_IMAGE = 2
    """A delete that is followed by the image after the update."""
    TRUNCATE = 3


_KINDS: Final = np.array(
    [Change.UPSERT] * len(UPSERTS)
    + [Change.BEFORE_IMAGE if code in BEFORE_IMAGES else Change.DELETE for code in DELETES]
    + [Change.TRUNCATE] * len(TRUNCATES)
)


def kinds_of(codes: pa.Array | pa.ChunkedArray, column: str) -> npt.NDArray[np.int64]:
    """CF-12: the kind of each event. Raises InvalidArgumentError for an unknown code."""
    if pa.types.is_dictionary(codes.type):
        codes = codes.cast(codes.type.value_type)
    if not (pa.types.is_string(codes.type) or pa.types.is_large_string(codes.type)):
        raise InvalidArgumentError(
            f"column {column!r} has the type {codes.type}, but operations must be text such as 'I', 'U' or 'D'. "
            "Nothing was written."
        )
    places = pc.index_in(pc.utf8_upper(codes), pa.array(_KNOWN, codes.type))
    if places.null_count:
        wrong = codes.filter(pc.is_null(places))[0].as_py()
        raise InvalidArgumentError(
            f"column {column!r} contains {wrong!r}, which is not an operation. Nothing was written. Known: "
            f"{', '.join(_KNOWN)}."
        )
    kinds: npt.NDArray[np.int64] = _KINDS[np.asarray(places)]
    return kinds
