"""Keys that are longer than the first sort words are matched by all their bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.types import BinaryType, FixedType, LongType, PrimitiveType, StringType

from tableformat.deletes.matching.comparable_values import comparable_type
from tableformat.deletes.matching.equality import EqualityKeys
from tableformat.deletes.matching.key_hashes import KeyWords
from tableformat.deletes.matching.range_match import deleted_mask, deleted_runs
from tableformat.deletes.spans.spans import sort_and_merge, spans_of_prefixes
from tableformat.keys.key_columns import KeyColumns

BEGINNINGS = [b"x" * length for length in (0, 7, 120, 127, 128, 129, 136, 143, 144, 145, 1000, 5003)]
ENDS = [b"", b"\0", b"\0" * 9, b"a", b"a\0", b"ab" * 80, b"ab" * 80 + b"c", b"b" * 300]
LONG_FIXED = 150


def long_values() -> st.SearchStrategy[bytes]:
    """Long common beginnings, some of them with a byte that differs, and short ends."""
    return st.builds(
        lambda begins, at, byte, ends: begins[:at] + byte + begins[at:] + ends,
        st.sampled_from(BEGINNINGS),
        st.sampled_from([0, 127, 128, 135, 900, 5000]),
        st.sampled_from([b"", b"", b"", b"\0", b"a", b"z"]),
        st.sampled_from(ENDS),
    )


KeyRows = list[tuple[bytes | None, int]]
KEY_ROWS = st.lists(st.tuples(long_values() | st.none(), st.integers(0, 2)), min_size=1, max_size=25)
TYPES: dict[str, tuple[PrimitiveType, pa.DataType]] = {
    "string": (StringType(), pa.string()),
    "large string": (StringType(), pa.large_string()),
    "binary": (BinaryType(), pa.binary()),
    "fixed": (FixedType(LONG_FIXED), pa.binary(LONG_FIXED)),
    "dictionary": (StringType(), pa.dictionary(pa.int32(), pa.string())),
}


def as_column(values: list[bytes | None], column_type: pa.DataType) -> pa.Array:
    if pa.types.is_fixed_size_binary(column_type):
        return pa.array(values, column_type)
    if pa.types.is_dictionary(column_type):
        return pa.array([None if value is None else value.decode() for value in values]).dictionary_encode()
    return pa.array(values, pa.binary()).cast(column_type)


def of_width(rows: KeyRows) -> KeyRows:
    return [(None if value is None else value[-LONG_FIXED:].rjust(LONG_FIXED, b"y"), number) for value, number in rows]


def in_key_order(rows: KeyRows) -> KeyRows:
    return sorted(rows, key=lambda row: (row[0] is not None, row[0] or b"", row[1]))


@pytest.mark.parametrize("kind", TYPES)
@given(rows=KEY_ROWS, deleted=KEY_ROWS, columns=st.integers(1, 2))
@settings(max_examples=examples(0.2))
def test_range_deletes_of_long_keys_delete_the_named_rows(
    kind: str, rows: KeyRows, deleted: KeyRows, columns: int
) -> None:
    """RD-1, RD-4: sorted rows and rows in any order."""
    key_type, column_type = TYPES[kind]
    if kind == "fixed":
        rows, deleted = of_width(rows), of_width(deleted)
    types, names = (key_type, LongType())[:columns], ("k", "n")[:columns]
    key = KeyColumns((1, 2)[:columns], names, types)
    given_columns = [as_column([value for value, _ in deleted], column_type), pa.array([n for _, n in deleted])]
    prefixes = pa.Table.from_arrays([_plain(column) for column in given_columns[:columns]], names=list(names))
    spans = sort_and_merge(spans_of_prefixes(key, prefixes))
    named = {row[:columns] for row in deleted}
    for ordered in (rows, in_key_order(rows)):
        held = [as_column([value for value, _ in ordered], column_type), pa.array([n for _, n in ordered])][:columns]
        expected = [row[:columns] in named for row in ordered]
        assert deleted_mask(held, spans).tolist() == expected
    starts, ends = deleted_runs(held, spans)
    found = np.zeros(len(rows), np.bool_)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        found[start:end] = True
    assert found.tolist() == expected


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


@pytest.mark.parametrize("kind", TYPES)
@given(rows=KEY_ROWS, deleted=KEY_ROWS)
@settings(max_examples=examples(0.2))
def test_long_keys_are_equal_iff_their_bytes_are(kind: str, rows: KeyRows, deleted: KeyRows) -> None:
    """DA-4: their hashes are equal too, regardless of the rest of their columns."""
    key_type, column_type = TYPES[kind]
    if kind == "fixed":
        rows, deleted = of_width(rows), of_width(deleted)

    def columns_of(of: KeyRows) -> list[pa.ChunkedArray]:
        values = as_column([value for value, _ in of], column_type)
        return [pa.chunked_array([values]), pa.chunked_array([pa.array([n for _, n in of])])]

    types = (key_type, LongType())
    keys = KeyWords.of(columns_of(deleted), types)
    words = KeyWords.of(columns_of(rows), types, keys)
    pairs = [(i, j) for i in range(len(rows)) for j in range(len(deleted))]
    mine, candidates = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
    equal = words.equal_rows(mine, keys, candidates)
    assert equal.tolist() == [rows[i] == deleted[j] for i, j in pairs]
    hashes, hashes_of_keys = words.hashes(slice(0, len(rows))), keys.hashes(slice(0, len(deleted)))
    assert (hashes[mine[equal]] == hashes_of_keys[candidates[equal]]).all()
    comparable = [
        _decoded(each).cast(comparable_type(of_type)) for each, of_type in zip(columns_of(deleted), types, strict=True)
    ]
    distinct = EqualityKeys.collapse((1, 2), types, [(comparable, 1)])
    assert len(distinct) == len(set(deleted))


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([_plain(column.chunk(0))])


def test_long_keys_with_different_ends_have_different_hashes() -> None:
    """Keys of equal hashes are compared one after the other."""
    values = [b"x" * 5000 + b"%d" % number + b"y" * 5000 for number in range(10_000, 11_000)]
    keys = KeyWords.of([pa.chunked_array([pa.array(values, pa.binary())])], [BinaryType()])
    assert len(np.unique(keys.hashes(slice(0, len(values))))) == len(values)
