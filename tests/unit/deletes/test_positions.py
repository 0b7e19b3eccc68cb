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


def test_positions_in_any_order_and_twice_are_one_set() -> None:
    assert positions(7, 3, 4, 3, 5) == runs((3, 6), (7, 8))


def test_overlapping_touching_and_empty_runs_become_maximal_ones() -> None:
    found = runs((5, 9), (1, 3), (3, 4), (6, 7), (20, 20), (12, 13))
    assert as_pairs((found.starts, found.ends)) == [(1, 4), (5, 9), (12, 13)]


def test_the_empty_set_is_false_and_masks_nothing() -> None:
    assert not PositionSet.empty()
    assert PositionSet.empty().mask(0, 3).tolist() == [False, False, False]
    assert PositionSet.from_array(np.empty(0, np.int64)) == PositionSet.empty() == runs()


def test_a_window_cuts_runs_at_both_ends_and_counts_from_its_first_row() -> None:
    found = runs((2, 6), (8, 9), (11, 20))
    assert as_pairs(found.runs(4, 8)) == [(0, 2), (4, 5), (7, 8)]
    assert found.mask(4, 8).tolist() == [True, True, False, False, True, False, False, True]
    assert found.count(4, 8) == 4
    assert as_pairs(found.runs(6, 2)) == []


def test_union_of_sets_merges_runs_that_meet() -> None:
    assert runs((0, 3)).union(runs((3, 5)), positions(9), PositionSet.empty()) == runs((0, 5), (9, 10))
    assert PositionSet.union_of([]) == PositionSet.empty()


def test_length_membership_and_array_agree() -> None:
    found = runs((2, 4), (7, 8))
    assert len(found) == 3
    assert found.to_array().tolist() == [2, 3, 7]
    assert [position for position in range(10) if position in found] == [2, 3, 7]


def test_a_mask_gives_back_its_positions() -> None:
    mask = np.array([True, False, True, True, False, True])
    assert PositionSet.from_mask(mask) == positions(0, 2, 3, 5)
    assert PositionSet.from_mask(np.zeros(4, np.bool_)) == PositionSet.empty()


def test_positions_beyond_32_bits_stay_exact() -> None:
    found = positions(2**33, 2**33 + 1, 5)
    assert as_pairs((found.starts, found.ends)) == [(5, 6), (2**33, 2**33 + 2)]
    assert found.mask(2**33 - 1, 3).tolist() == [False, True, True]


def test_a_set_travels_to_another_process() -> None:
    found = runs((2, 4), (7, 8))
    assert pickle.loads(pickle.dumps(found)) == found


def test_sets_that_share_starts_or_ends_only_are_different() -> None:
    assert runs((0, 1)) != runs((0, 2))
    assert runs((0, 2)) != runs((1, 2))
