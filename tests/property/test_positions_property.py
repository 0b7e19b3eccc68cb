"""Sets of positions compared with Python sets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from tableformat.deletes.codecs.deletion_vector import decode_vector, encode_vector
from tableformat.deletes.codecs.position_rows import positions_by_path
from tableformat.deletes.positions import MAX_POSITION, PositionSet
from tableformat.merge_on_read.small_files.key_rows import joined, parted, starts_of

small = st.integers(0, 60)
any_position = st.one_of(
    small, st.integers(0, 2**20), st.integers(2**32 - 40, 2**32 + 40), st.integers(0, 2**62), st.just(MAX_POSITION)
)
run_lists = st.lists(st.tuples(small, st.integers(0, 12)), max_size=12)


def set_of(runs: list[tuple[int, int]]) -> tuple[PositionSet, set[int]]:
    starts = np.array([start for start, _ in runs], np.int64)
    lengths = np.array([length for _, length in runs], np.int64)
    model = {position for start, length in runs for position in range(start, start + length)}
    return PositionSet.from_runs(starts, starts + lengths), model


def is_canonical(positions: PositionSet) -> bool:
    return bool((positions.starts < positions.ends).all() and (positions.ends[:-1] < positions.starts[1:]).all())


@given(run_lists)
def test_position_set_of_runs_contains_their_positions(runs: list[tuple[int, int]]) -> None:
    positions, model = set_of(runs)
    assert is_canonical(positions)
    assert positions.to_array().tolist() == sorted(model)
    assert positions == PositionSet.from_array(np.array(sorted(model, reverse=True), np.int64))
    assert len(positions) == len(model)
    assert bool(positions) == bool(model)


@given(st.lists(st.tuples(run_lists, st.integers(0, 20)), max_size=6))
def test_concatenated_position_sets_equal_the_sets_of_each_file(files: list[tuple[list[tuple[int, int]], int]]) -> None:
    """Also files without rows; positions beyond the end of a file belong to no file."""
    sets, counts = [set_of(runs)[0] for runs, _ in files], [count for _, count in files]
    starts = starts_of(counts)
    together = joined(sets, starts)
    assert is_canonical(together)
    windows = [PositionSet.from_runs(*each.runs(0, count)) for each, count in zip(sets, counts, strict=True)]
    assert together == PositionSet.union_of(
        each.shifted(start) for each, start in zip(windows, starts.tolist(), strict=False)
    )
    found = parted(together, starts)
    assert found == windows
    assert all(map(is_canonical, found))
    beyond = PositionSet.from_array(np.array([0, 2**63 - 2]))
    assert joined([beyond, beyond], np.array([0, 5, 9])).to_array().tolist() == [0, 5]


@given(run_lists, small, small)
def test_position_mask_of_a_window(runs: list[tuple[int, int]], start: int, count: int) -> None:
    positions, model = set_of(runs)
    mask = positions.mask(start, count)
    assert mask.tolist() == [position in model for position in range(start, start + count)]
    assert PositionSet.from_mask(mask) == PositionSet.from_runs(*positions.runs(start, count))
    assert positions.count(start, count) == mask.sum()


@given(st.lists(run_lists, max_size=4))
def test_position_set_union_agrees_with_python_sets(lists: list[list[tuple[int, int]]]) -> None:
    sets = [set_of(runs) for runs in lists]
    union = PositionSet.union_of([positions for positions, _ in sets])
    assert is_canonical(union)
    assert union.to_array().tolist() == sorted(set().union(*[model for _, model in sets]))


@given(run_lists, run_lists, st.integers(0, 60))
def test_position_set_difference_agrees_with_python_sets(
    runs: list[tuple[int, int]], others: list[tuple[int, int]], rows: int
) -> None:
    (positions, model), (other, other_model) = set_of(runs), set_of(others)
    left = positions.minus(other)
    assert is_canonical(left)
    assert left.to_array().tolist() == sorted(model - other_model)
    alive = PositionSet.every(rows).minus(positions)
    assert is_canonical(alive)
    assert alive.to_array().tolist() == [row for row in range(rows) if row not in model]


@given(st.lists(small), st.booleans())
def test_position_set_accepts_duplicate_and_unsorted_positions(values: list[int], is_sorted: bool) -> None:
    positions = PositionSet.from_array(np.array(sorted(values) if is_sorted else values, np.int64))
    assert is_canonical(positions)
    assert positions.to_array().tolist() == sorted(set(values))


@given(st.lists(any_position), run_lists)
def test_deletion_vector_round_trip(values: list[int], runs: list[tuple[int, int]]) -> None:
    """DA-7"""
    positions = PositionSet.from_array(np.array(values, np.int64)).union(set_of(runs)[0])
    assert decode_vector(encode_vector(positions), "x") == positions


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 12)), max_size=12),
    st.sampled_from(["text", "dictionary", "larger dictionary", "values twice"]),
    st.integers(0, 12),
    st.none() | st.sets(st.sampled_from("abcd")),
)
@example([("a", 1), ("b", 2)], "larger dictionary", 0, None)
def test_position_deletes_are_grouped_by_path(
    rows: list[tuple[str, int]], form: str, cut: int, wanted: set[str] | None
) -> None:
    """DA-10: in any order, sorted or not, with repetitions, and with any encoding of the paths."""
    paths, positions = [path for path, _ in rows], pa.array([position for _, position in rows], pa.int64())
    match form:
        case "text":
            column = pa.array(paths, pa.string())
        case "dictionary":
            column = pa.array(paths, pa.string()).dictionary_encode()
        case _:
            values = ["d", "c", "b", "a", "a", "b", "c"] if form == "values twice" else ["d", "c", "b", "a"]
            places = [
                len(values) - 1 - values[::-1].index(path) if at % 2 else values.index(path)
                for at, path in enumerate(paths)
            ]
            column = pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), pa.array(values))
    in_chunks = pa.chunked_array([column[:cut], column[cut:]] if 0 < cut < len(rows) else [column])
    found = positions_by_path(pa.table({"file_path": in_chunks, "pos": positions}), wanted)
    named = {path for path in paths if wanted is None or path in wanted}
    assert {path: of_path.to_array().tolist() for path, of_path in found.items()} == {
        path: sorted({position for other, position in rows if other == path}) for path in named
    }
    assert all(map(is_canonical, found.values()))
