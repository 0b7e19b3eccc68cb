"""Order-preserving bytes of composite keys (RD-1, RD-4).

    key     := column*                              a key prefix is a byte prefix (RD-5)
    column  := 01                                   null, before every value
             | 02 payload                           payload by type family, see `KeyFamily`

Neither 00 nor FF begins a column, so the empty string is below and FF above everything that begins with the same
columns. Rows are compared as sort words (`sort_words.py`); bytes are for what is few and compared often: cuts and the
bounds of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import PrimitiveType

from tableformat.errors import InvalidKeyError
from tableformat.keys.arrow_columns import array_of_values, as_key_array, stored_key_array
from tableformat.keys.families import KeyFamily, family_of, fixed_width_bytes
from tableformat.keys.sort_words import decimal_halves, number_codes, number_view, value_bytes

ENCODING_VERSION: Final = 1
"""Changes if the order of two keys or the payload of a type changes. Stored in files and footers."""

NULL_MARKER: Final = b"\x01"
VALUE_MARKER: Final = b"\x02"
AFTER_MARKER: Final = b"\xff"
"""RD-1: appended to a prefix, it gives the cut after all keys with the prefix."""
ESCAPED_ZERO: Final = b"\x00\xff"
TERMINATOR: Final = b"\x00\x01"
_SIGN_BIT: Final = np.uint64(1 << 63)
_NO_BORDERS: Final[npt.NDArray[np.int64]] = np.empty(0, np.int64)
_EMPTY: Final = pa.scalar(b"", pa.large_binary())
_NULL: Final = pa.scalar(NULL_MARKER, pa.large_binary())
_VALUE: Final = pa.scalar(VALUE_MARKER, pa.large_binary())
_TERMINATOR: Final = pa.scalar(TERMINATOR, pa.large_binary())


def encode_rows(columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[PrimitiveType]) -> pa.LargeBinaryArray:
    """RD-4: the keys of n rows as n byte strings whose order is the key order.

    Columns have the table's types or types that promote to them. Raises InvalidKeyError if a column does not fit its
    type.

    >>> from pyiceberg.types import LongType, StringType
    >>> keys = encode_rows([pa.array(["b", "a", None]), pa.array([1, -2, 3])], (StringType(), LongType())).to_pylist()
    >>> [keys.index(key) for key in sorted(keys)]
    [2, 1, 0]
    """
    if len(columns) != len(types) or not columns:
        raise InvalidKeyError(f"{len(columns)} columns given for a key of {len(types)}.")
    pieces = [
        encode_column(as_key_array(column, key_type, name=f"column {position}"), key_type)
        for position, (column, key_type) in enumerate(zip(columns, types, strict=True))
    ]
    return join_pieces(pieces)


def encode_runs(
    columns: Sequence[pa.Array | pa.ChunkedArray],
    types: Sequence[PrimitiveType],
    borders: npt.NDArray[np.int64] = _NO_BORDERS,
) -> tuple[pa.LargeBinaryArray, npt.NDArray[np.int64]]:
    """RD-4: the keys of runs of equal adjacent rows, and the begin of each run.

    Rows with one prefix are mostly adjacent. Two adjacent runs may have the same key. No run crosses one of the
    `borders`.

    >>> from pyiceberg.types import LongType
    >>> keys, begins = encode_runs([pa.array([7, 7, 9, 9, 9, 7])], (LongType(),), np.array([4]))
    >>> len(keys), begins.tolist()
    (4, [0, 2, 4, 5])
    """
    arrays = [
        stored_key_array(column, key_type, name=f"column {position}")
        for position, (column, key_type) in enumerate(zip(columns, types, strict=True))
    ]
    is_first = np.zeros(len(arrays[0]), np.bool_)
    is_first[:1] = True
    is_first[borders[borders < len(is_first)]] = True
    for array in arrays:
        # Equal values have one encoding, including zeros of either sign. A null or a NaN begins a run.
        is_first[1:] |= np.asarray(pc.not_equal(array[1:], array[:-1]).fill_null(True))
    chosen = pa.array(is_first)
    pieces = [encode_column(array.filter(chosen), key_type) for array, key_type in zip(arrays, types, strict=True)]
    return join_pieces(pieces), np.flatnonzero(is_first)


def encode_values(values: tuple[Any, ...], types: Sequence[PrimitiveType]) -> bytes:
    """RD-4: a key or prefix of Python values; None is null. Raises InvalidKeyError if a value does not fit its type.

    >>> from pyiceberg.types import LongType, StringType
    >>> types = (StringType(), LongType())
    >>> encode_values(("A", 3), types).hex(" ")
    '02 41 00 01 02 80 00 00 00 00 00 00 03'
    >>> encode_values(("A",), types).hex(" ")  # A prefix of the key is a prefix of the bytes (RD-5).
    '02 41 00 01'
    >>> encode_values((None, 3), types) < encode_values(("", 3), types) < encode_values(("A", -3), types)
    True
    """
    if len(values) > len(types):
        raise InvalidKeyError(f"{len(values)} values given for a key of {len(types)} columns.")
    if not values:
        return b""
    arrays = [
        array_of_values([value], key_type, name=f"column {position}")
        for position, (value, key_type) in enumerate(zip(values, types, strict=False))
    ]
    encoded: bytes = encode_rows(arrays, types[: len(values)])[0].as_py()
    return encoded


def encode_column(array: pa.Array, key_type: PrimitiveType) -> pa.LargeBinaryArray:
    """RD-4: marker and payload of every value; `array` is of the Arrow type that holds `key_type`.

    >>> from pyiceberg.types import LongType
    >>> [piece.hex(" ") for piece in encode_column(pa.array([-1, None, 0]), LongType()).to_pylist()]
    ['02 7f ff ff ff ff ff ff ff', '01', '02 80 00 00 00 00 00 00 00']
    """
    family = family_of(key_type)
    if family is KeyFamily.VARIABLE_BYTES:
        encoded = pc.binary_join_element_wise(_VALUE, _escaped(array), _TERMINATOR, _EMPTY)
        return encoded.fill_null(_NULL) if array.null_count else encoded
    encoded = _fixed_width_column(_payload_bytes(array, key_type, family))
    return pc.if_else(array.is_valid(), encoded, _NULL) if array.null_count else encoded


def join_pieces(pieces: Sequence[pa.LargeBinaryArray | pa.LargeBinaryScalar]) -> pa.LargeBinaryArray:
    """For each row the concatenation of its pieces, which are not null. At least one piece is an array."""
    return pieces[0] if len(pieces) == 1 else pc.binary_join_element_wise(*pieces, _EMPTY)


def _payload_bytes(array: pa.Array, key_type: PrimitiveType, family: KeyFamily) -> npt.NDArray[np.uint8]:
    """(n, width) payloads. The payload of a null is arbitrary."""
    match family:
        case KeyFamily.BOOLEAN:
            return number_view(array).view(np.uint8).reshape(-1, 1)
        case KeyFamily.INTEGER | KeyFamily.FLOAT:
            flipped = number_codes(array).view(np.uint64) ^ _SIGN_BIT
            return flipped.astype(">u8").view(np.uint8).reshape(-1, 8)
        case KeyFamily.DECIMAL:
            little_endian = np.ascontiguousarray(decimal_halves(array)).view(np.uint8).reshape(-1, 16)
            payload = little_endian[:, ::-1].copy()
            payload[:, 0] ^= 0x80
            return payload
        case KeyFamily.FIXED_BYTES:
            width = fixed_width_bytes(key_type)
            stored = array.buffers()[1]
            if stored is None or width == 0:
                return np.zeros((len(array), width), np.uint8)
            values = np.frombuffer(stored, np.uint8, count=(array.offset + len(array)) * width)
            return values.reshape(-1, width)[array.offset :]
        case KeyFamily.VARIABLE_BYTES:
            raise AssertionError("payloads of variable length have no matrix")


def _fixed_width_column(payload: npt.NDArray[np.uint8]) -> pa.LargeBinaryArray:
    row_count, width = payload.shape
    marked = np.empty((row_count, width + 1), np.uint8)
    marked[:, 0] = VALUE_MARKER[0]
    marked[:, 1:] = payload
    offsets = np.arange(row_count + 1, dtype=np.int64) * (width + 1)
    return pa.Array.from_buffers(pa.large_binary(), row_count, [None, pa.py_buffer(offsets), pa.py_buffer(marked)])


def _escaped(array: pa.Array) -> pa.LargeBinaryArray:
    binary = array.cast(pa.large_binary())
    values = value_bytes(binary)
    if np.count_nonzero(values) == len(values):
        return binary
    return pc.replace_substring(binary, pattern=b"\x00", replacement=ESCAPED_ZERO)
