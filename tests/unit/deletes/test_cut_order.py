"""Ordering encoded cuts by one number each, compared with the order of Python's bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tableformat.deletes.spans.cut_ranks import _sorted_order


@pytest.mark.parametrize("beginning", [b"", b"\x02", b"\x02shared by all"])
@pytest.mark.parametrize("alphabet", [b"ab", b"\x00\x01\xff", b"\x7f\x80"])
@pytest.mark.parametrize("longest", [0, 1, 3, 8, 9, 20])
def test_cuts_are_ordered_by_their_bytes(beginning: bytes, alphabet: bytes, longest: int) -> None:
    """RD-1: equal cuts are adjacent, and only the first of them counts as new."""
    random = np.random.default_rng(longest)
    letters = np.frombuffer(alphabet, np.uint8)
    cuts = [beginning + random.choice(letters, random.integers(0, longest + 1)).tobytes() for _ in range(60)]
    order, is_new = _sorted_order(pa.array(cuts, pa.large_binary()))
    ordered = [cuts[index] for index in order]
    assert ordered == sorted(cuts)
    assert is_new.tolist() == [False, *(one != other for one, other in zip(ordered[1:], ordered, strict=False))]


def encoded(*cuts: bytes) -> pa.LargeBinaryArray:
    return pa.array(cuts, pa.large_binary())
