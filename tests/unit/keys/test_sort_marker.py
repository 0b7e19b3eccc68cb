"""Only our own marker counts as proof that a file is sorted."""

from __future__ import annotations

import pytest

from tableformat.keys.sort_marker import SORTED_BY, marker_bytes, sorted_by


def test_marker_round_trip() -> None:
    """FM-7, RD-11."""
    assert marker_bytes([4, 7]) == b'{"field-ids": [4, 7], "encoding-version": 1}'
    assert sorted_by({SORTED_BY: marker_bytes([4, 7]), b"other": b"x"}) == (4, 7)


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        b"\xff",
        b"[]",
        b'{"field-ids": [1]}',
        b'{"encoding-version": 1}',
        b'{"field-ids": [1], "encoding-version": 2}',
        b'{"field-ids": [], "encoding-version": 1}',
        b'{"field-ids": ["1"], "encoding-version": 1}',
    ],
)  # fmt: skip
def test_unknown_sort_marker_is_ignored(stored: bytes) -> None:
    """FM-24, RD-11."""
    assert sorted_by({SORTED_BY: stored}) is None
