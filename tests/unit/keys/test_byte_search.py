"""Searching sorted byte strings: numpy compares eight bytes at a time, and the rest is searched after it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tableformat.keys.byte_search import search_bytes

_STRINGS = st.builds(
    lambda shared, word, rest: shared + word + rest,
    st.sampled_from([b"", b"partner-", b"partner-\x00"]),
    st.sampled_from([b"", b"\x00", b"12345678", b"12345679"]),
    st.binary(max_size=3) | st.sampled_from([b"\x00" * 9, b"\xff" * 9]),
)


@given(ordered=st.lists(_STRINGS, max_size=40).map(sorted), questions=st.lists(_STRINGS, max_size=20))
def test_the_places_are_those_of_bisection(ordered: list[bytes], questions: list[bytes]) -> None:
    asked = [*questions, *ordered[:5]]
    strings, values = pa.array(ordered, pa.large_binary()), pa.array(asked, pa.large_binary())
    assert search_bytes(strings, values, right=True).tolist() == [bisect_right(ordered, each) for each in asked]
    assert search_bytes(strings, values, right=False).tolist() == [bisect_left(ordered, each) for each in asked]
