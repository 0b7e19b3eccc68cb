"""Sort words: key columns as 64-bit integers with the order of the values, to compare rows with cuts.

Encoding whole rows as bytes costs more than comparing them, so rows are never encoded. A column is a short list of
levels, each an int64 per row. Comparing level by level gives the key order (RD-1, RD-4) of non-null values:

    boolean, integers, dates, times, floats, decimals up to 18 digits   1 level
    longer decimals                                                     2 levels (high, low)
    fixed, uuid                                                         8 bytes a level, big endian, zero padded
    string, binary                                                      the same, then one level for the length

The length comes last because with padding "a" and "a\\0" are equal before it. Levels are computed only for requested
rows: a binary search reads a few thousand of millions. Null rows read as 0; `valid` marks them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.types import DecimalType, PrimitiveType

from tableformat.errors import SchemaMismatchError
from tableformat.keys.arrow_columns import single_array
from tableformat.keys.families import KeyFamily, arrow_type_of, family_of, fixed_width_bytes
from tableformat.keys.microseconds import without_finer_digits

Codes: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
RowChoice: TypeAlias = npt.NDArray[np.int64] | slice

_BYTES_PER_WORD: Final = 8
_ONE_WORD_DECIMAL_DIGITS: Final = 18
_SIGN_BIT: Final = np.uint64(1 << 63)
_NAN_CODE: Final = np.iinfo(np.int64).max
_NEGATIVE_FLOAT_FLIP: Final = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_LEADING_BYTES_MASK: Final = np.array(
    [0] + [((1 << 64) - 1) ^ ((1 << (64 - 8 * n)) - 1) for n in range(1, 9)], np.uint64
)
"""Entry n keeps the first n bytes of a big-endian word."""


class SortWords(Protocol):
    """One key column of rows or cuts."""

    @property
    def valid(self) -> Flags | None:
        """False for null values; None if there are no nulls."""

    def level(self, index: int, level_count: int, rows: RowChoice) -> Codes:
        """Sort word `index` of `level_count` of the chosen rows. `level_count` is the result of `level_count()` for the
        cuts."""


@dataclass(frozen=True, slots=True)
class NumberWords:
    """Booleans, integers, dates, times, timestamps and floats: the values in their own width, widened on access."""

    values: npt.NDArray[Any]
    valid: Flags | None

    def level(self, index: int, level_count: int, rows: RowChoice) -> Codes:  # noqa: ARG002 (one level: nothing to tell apart)
        """Sort word 0, the only one, of the chosen rows; 0 for null rows."""
        chosen = self.values[rows]
        codes = _float_codes(chosen) if chosen.dtype.kind == "f" else chosen.astype(np.int64, copy=False)
        return _zero_where_null(codes, self.valid, rows)


@dataclass(frozen=True, slots=True)
class DecimalWords:
    """Decimals: (n, 2) little-endian halves of the unscaled 128-bit values."""

    halves: Codes
    valid: Flags | None

    def level(self, index: int, level_count: int, rows: RowChoice) -> Codes:
        """The value if it fits one sort word. Otherwise its high half, then its low half, shifted from unsigned to
        signed."""
        if level_count == 1:
            codes = self.halves[rows, 0]
        elif index == 0:
            codes = self.halves[rows, 1]
        else:
            codes = (self.halves[rows, 0].view(np.uint64) ^ _SIGN_BIT).view(np.int64)
        return _zero_where_null(codes, self.valid, rows)


@dataclass(frozen=True, slots=True)
class ByteWords:
    """Strings, binary, fixed and UUID: the start and end of each value in one buffer."""

    starts: Codes
    ends: Codes
    buffer: npt.NDArray[np.uint8]
    """At least 8 bytes long."""
    valid: Flags | None
    is_variable: bool
    array: pa.Array | None = None
    """The values, if they are complete."""

    def from_byte(self, skipped: int) -> ByteWords:
        """The same values without their common first bytes."""
        return ByteWords(self.starts + skipped, self.ends, self.buffer, self.valid, self.is_variable)

    def level(self, index: int, level_count: int, rows: RowChoice) -> Codes:
        """Eight bytes from `8 * index` on, big endian and padded with zeros. The last sort word of strings and binary
        is the length in bytes."""
        starts, ends = self.starts[rows], self.ends[rows]
        if self.is_variable and index == level_count - 1:
            # Rows that are longer than every cut need no exact length: they are greater than all cuts with which they
            # tie.
            return _zero_where_null(ends - starts, self.valid, rows)
        sort_words = self._words(starts, ends, index)
        sort_words ^= _SIGN_BIT
        return _zero_where_null(sort_words.view(np.int64), self.valid, rows)

    def words_at(self, rows: Codes, index: Codes) -> npt.NDArray[np.uint64]:
        """The eight bytes from `8 * index` on of each row, with an index for each row."""
        return self._words(self.starts[rows], self.ends[rows], index)

    def _words(self, starts: Codes, ends: Codes, index: int | Codes) -> npt.NDArray[np.uint64]:
        at = starts + index * _BYTES_PER_WORD
        sort_words = _load_sort_words(self.buffer, at)
        sort_words &= _LEADING_BYTES_MASK[np.minimum(np.maximum(ends - at, 0), _BYTES_PER_WORD)]
        return sort_words


@dataclass(frozen=True, slots=True)
class DictionaryWords:
    """A dictionary-encoded column: sort words of the dictionary, looked up by the indices."""

    dictionary: SortWords
    indices: npt.NDArray[np.signedinteger[Any]]
    """In the width of the column: most rows are never read."""
    valid: Flags | None
    entry_count: int
    levels_of_entries: dict[tuple[int, int], Codes] = field(default_factory=dict)
    """The sort words of every entry by index and number of levels, computed once that many rows were requested."""

    def level(self, index: int, level_count: int, rows: RowChoice) -> Codes:
        """The sort words of the dictionary entries of the chosen rows."""
        chosen = self.indices[rows]
        of_entries = self.levels_of_entries.get((index, level_count))
        if of_entries is None and len(chosen) >= self.entry_count:
            of_entries = self.dictionary.level(index, level_count, slice(0, None))
            self.levels_of_entries[index, level_count] = of_entries
        codes = self.dictionary.level(index, level_count, chosen) if of_entries is None else of_entries[chosen]
        return _zero_where_null(codes, self.valid, rows)


@dataclass(frozen=True, slots=True)
class NullWords:
    """A column that is null in every row."""

    row_count: int

    @property
    def valid(self) -> Flags:
        """False for every row."""
        return np.zeros(self.row_count, np.bool_)

    def level(self, index: int, level_count: int, rows: RowChoice) -> Codes:  # noqa: ARG002 (every level reads 0)
        """0 for every chosen row."""
        chosen = range(*rows.indices(self.row_count)) if isinstance(rows, slice) else rows
        return np.zeros(len(chosen), np.int64)


def sort_words_of(column: pa.Array | pa.ChunkedArray | None, key_type: PrimitiveType, row_count: int) -> SortWords:
    """The sort words of a column of `row_count` rows that is compared as `key_type`; None means null in every row.

    The column may have a type that promotes to `key_type`, or that contains it (a longer one, a dictionary, a view
    type). Raises SchemaMismatchError for other types.
    """
    if column is None or pa.types.is_null(column.type):
        return NullWords(row_count)
    array = single_array(column)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        return _dictionary_words(array, key_type)
    family = family_of(key_type)
    array = _comparable(array, key_type, family)
    valid = _valid_flags(array)
    match family:
        case KeyFamily.BOOLEAN | KeyFamily.INTEGER | KeyFamily.FLOAT:
            return NumberWords(number_view(array), valid)
        case KeyFamily.DECIMAL:
            return DecimalWords(decimal_halves(array), valid)
        case KeyFamily.VARIABLE_BYTES:
            offsets = _offsets(array)
            return ByteWords(offsets[:-1], offsets[1:], _byte_buffer(array), valid, is_variable=True, array=array)
        case KeyFamily.FIXED_BYTES:
            width = fixed_width_bytes(key_type)
            starts = np.arange(array.offset, array.offset + len(array), dtype=np.int64) * width
            return ByteWords(starts, starts + width, _byte_buffer(array), valid, is_variable=False, array=array)


def level_count(sort_words: SortWords, key_type: PrimitiveType) -> int:
    """The number of levels that distinguish the given values (of the cuts) from any other value of the type."""
    family = family_of(key_type)
    if isinstance(key_type, DecimalType):
        return 1 if key_type.precision <= _ONE_WORD_DECIMAL_DIGITS else 2
    if family is KeyFamily.FIXED_BYTES:
        return -(-fixed_width_bytes(key_type) // _BYTES_PER_WORD)
    if family is KeyFamily.VARIABLE_BYTES:
        if isinstance(sort_words, DictionaryWords):
            return level_count(sort_words.dictionary, key_type)
        if not isinstance(sort_words, ByteWords):
            return 1
        longest = int((sort_words.ends - sort_words.starts).max(initial=0))
        return -(-longest // _BYTES_PER_WORD) + 1
    return 1


def number_view(array: pa.Array) -> npt.NDArray[Any]:
    """The values of a boolean or fixed-width number array without a copy (booleans: one byte each). Null slots are
    arbitrary."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    width_bits = array.type.bit_width
    dtype = np.dtype(f"f{width_bits // 8}" if pa.types.is_floating(array.type) else f"i{width_bits // 8}")
    return _buffer_view(array, dtype)[array.offset : array.offset + len(array)]


def decimal_halves(array: pa.Array) -> Codes:
    """(n, 2): the low and high half of each unscaled value of a decimal128 array. Null slots are arbitrary."""
    halves = _buffer_view(array, np.dtype("<i8")).reshape(-1, 2)
    return cast("Codes", halves[array.offset : array.offset + len(array)])


def number_codes(array: pa.Array) -> Codes:
    """Numbers as int64 with the same order, one level. Nulls are ignored."""
    return NumberWords(number_view(array), None).level(0, 1, slice(None))


def value_bytes(array: pa.Array) -> npt.NDArray[np.uint8]:
    """The bytes of all values of a string or binary array, possibly including those of null slots."""
    offsets, values = _offsets(array), array.buffers()[2]
    return np.zeros(0, np.uint8) if values is None else np.frombuffer(values, np.uint8)[offsets[0] : offsets[-1]]


def _comparable(array: pa.Array, key_type: PrimitiveType, family: KeyFamily) -> pa.Array:
    """The array itself if its buffers can be read as the family's sort words, otherwise a cast copy."""
    types, wanted = pa.types, arrow_type_of(key_type)
    given = array.type
    is_readable = {
        KeyFamily.BOOLEAN: types.is_boolean(given),
        KeyFamily.INTEGER: given == wanted or (types.is_signed_integer(given) and types.is_signed_integer(wanted)),
        KeyFamily.FLOAT: types.is_float32(given) or types.is_float64(given),
        KeyFamily.DECIMAL: types.is_decimal128(given) and given.scale == getattr(wanted, "scale", None),
        KeyFamily.VARIABLE_BYTES: any(
            kind(given) for kind in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
        ),
        KeyFamily.FIXED_BYTES: given == wanted,
    }[family]
    if is_readable:
        return array
    if types.is_timestamp(given) and types.is_timestamp(wanted) and given.unit == wanted.unit:
        return array
    is_other_kind = (types.is_string(given) or types.is_large_string(given)) and family is not KeyFamily.VARIABLE_BYTES
    try:
        if is_other_kind:
            raise pa.ArrowInvalid("text has another order than the type of the key")
        # Finer units of other writers are truncated to the table's unit, as in the reader.
        return without_finer_digits(array, wanted).cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatchError(f"values of Arrow type {given} cannot be compared as {key_type}: {error}") from error


def _dictionary_words(array: pa.DictionaryArray, key_type: PrimitiveType) -> SortWords:
    dictionary = array.dictionary
    if len(dictionary) == 0:
        return NullWords(len(array))
    sort_words = sort_words_of(dictionary, key_type, len(dictionary))
    indices = array.indices
    present = _valid_flags(indices)
    # Null slots have arbitrary indices, which may be outside the dictionary.
    positions = number_view(indices.fill_null(0) if present is not None else indices)
    if sort_words.valid is not None:
        value_present = sort_words.valid[positions]
        present = value_present if present is None else present & value_present
    return DictionaryWords(sort_words, positions, present, len(dictionary))


def _float_codes(values: npt.NDArray[Any]) -> Codes:
    """RD-4: doubles as int64 in the same order. Adding 0.0 turns -0.0 into 0.0."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        doubles = values.astype(np.float64, copy=False) + 0.0
    bits = doubles.view(np.int64)
    codes = np.where(bits < 0, bits ^ _NEGATIVE_FLOAT_FLIP, bits)
    codes[np.isnan(doubles)] = _NAN_CODE
    return codes


def _load_sort_words(buffer: npt.NDArray[np.uint8], at: Codes) -> npt.NDArray[np.uint64]:
    """8 bytes from each address as a big-endian number. Bytes after the end of the buffer read as zeros."""
    last = len(buffer) - _BYTES_PER_WORD
    unaligned = np.ndarray((last + 1,), "<u8", buffer=buffer, strides=(1,))
    inside = np.minimum(at, last)
    sort_words = unaligned[inside].byteswap()
    overhang = at - inside
    if overhang.any():
        sort_words <<= (np.minimum(overhang, 7) * 8).astype(np.uint64)
        sort_words[overhang >= _BYTES_PER_WORD] = 0
    return sort_words


def _zero_where_null(codes: Codes, valid: Flags | None, rows: RowChoice) -> Codes:
    return codes if valid is None else np.where(valid[rows], codes, np.int64(0))


def _valid_flags(array: pa.Array) -> Flags | None:
    if array.null_count == 0:
        return None
    return cast("Flags", array.is_valid().to_numpy(zero_copy_only=False))


def _buffer_view(array: pa.Array, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    values = array.buffers()[1]
    return np.zeros(0, dtype) if values is None else np.frombuffer(values, dtype, count=values.size // dtype.itemsize)


def _offsets(array: pa.Array) -> Codes:
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    stored = array.buffers()[1]
    if stored is None or stored.size == 0:
        return np.zeros(1, np.int64)
    view = np.frombuffer(stored, np.int64 if is_large else np.int32)
    return view[array.offset : array.offset + len(array) + 1].astype(np.int64, copy=False)


def _byte_buffer(array: pa.Array) -> npt.NDArray[np.uint8]:
    """The array's value bytes, padded to at least one word."""
    values = array.buffers()[-1]
    stored = np.zeros(0, np.uint8) if values is None else np.frombuffer(values, np.uint8)
    if len(stored) >= _BYTES_PER_WORD:
        return stored
    return np.concatenate([stored, np.zeros(_BYTES_PER_WORD - len(stored), np.uint8)])
