"""Ordering encoded cuts by one number each, compared with the order of Python's bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tableformat.deletes.spans.cut_ranks import _order_by_one_word, _sorted_order


@pytest.mark.parametrize("beginning", [b"", b"\x02", b"\x02shared by all"])
@pytest.mark.parametrize("alphabet", [b"ab", b"\x00\x01\xff", b"\x7f\x80"])
@pytest.mark.parametrize("longest", [0, 1, 3, 8, 9, 20])
def test_cuts_are_in_the_order_of_their_bytes(beginning: bytes, alphabet: bytes, longest: int) -> None:
    """RD-1: equal cuts are adjacent, and only the first of them counts as new."""
    random = np.random.default_rng(longest)
    letters = np.frombuffer(alphabet, np.uint8)
    cuts = [beginning + random.choice(letters, random.integers(0, longest + 1)).tobytes() for _ in range(60)]
    order, is_new = _sorted_order(pa.array(cuts, pa.large_binary()))
    ordered = [cuts[index] for index in order]
    assert ordered == sorted(cuts)
    assert is_new.tolist() == [False, *(one != other for one, other in zip(ordered[1:], ordered, strict=False))]


def test_cuts_of_numbers_are_told_apart_by_one_word() -> None:
    numbers = [b"\x02" + number.to_bytes(8, "big") for number in (7, 1 << 40, 3)]
    assert (
        _order_by_one_word(pa.array([*numbers, *(each + b"\xff" for each in numbers)], pa.large_binary())) is not None
    )
    assert _order_by_one_word(pa.array([], pa.large_binary())) is None


def encoded(*cuts: bytes) -> pa.LargeBinaryArray:
    return pa.array(cuts, pa.large_binary())


def test_one_word_behind_a_shared_byte_is_enough_for_any_number() -> None:
    """RD-1: nine bytes; the first is shared, and the other eight differ from the first bit on."""
    found = _order_by_one_word(encoded(b"\x02" + b"\xff" * 8, b"\x02" + bytes(8), b"\x02" + b"\x7f" * 8))
    assert found is not None
    assert found[0].tolist() == [1, 2, 0]


def test_equal_cuts_of_several_lengths_are_told_apart_by_one_word() -> None:
    """RD-1: equal words of equal lengths are one cut; of several lengths they end in zeros, and are several."""
    found = _order_by_one_word(encoded(b"kb1", b"ka", b"kb1", b"ka"))
    assert found is not None
    assert found[1].tolist() == [False, False, True, False]
    assert _order_by_one_word(encoded(b"kb", b"kb\0", b"kc")) is None
    order, is_new = _sorted_order(encoded(b"kb\0", b"kb", b"kc"))
    assert (order.tolist(), is_new.tolist()) == ([1, 0, 2], [False, True, True])


def test_one_cut() -> None:
    order, is_new = _sorted_order(encoded(b"only"))
    assert (order.tolist(), is_new.tolist()) == ([0], [False])
