"""Sets of row positions."""

from __future__ import annotations

import pickle

import numpy as np

from tableformat.deletes.positions import PositionSet


def positions(*values: int) -> PositionSet:
    return PositionSet.from_array(np.array(values, np.int64))


def runs(*pairs: tuple[int, int]) -> PositionSet:
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return PositionSet.from_runs(both[:, 0], both[:, 1])


def as_pairs(found: tuple[np.ndarray, np.ndarray]) -> list[tuple[int, int]]:
    return list(zip(found[0].tolist(), found[1].tolist(), strict=True))


def test_positions_beyond_32_bits_stay_exact() -> None:
    found = positions(2**33, 2**33 + 1, 5)
    assert as_pairs((found.starts, found.ends)) == [(5, 6), (2**33, 2**33 + 2)]
    assert found.mask(2**33 - 1, 3).tolist() == [False, True, True]


def test_position_set_pickle_round_trip() -> None:
    found = runs((2, 4), (7, 8))
    assert pickle.loads(pickle.dumps(found)) == found
