"""Rows of position delete files."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tableformat.deletes.codecs.position_rows import positions_by_path


def rows(*pairs: tuple[str | None, int | None]) -> pa.Table:
    return pa.table(
        {
            "file_path": pa.array([path for path, _ in pairs], pa.string()),
            "pos": pa.array([pos for _, pos in pairs], pa.int64()),
        }
    )


def found_in(table: pa.Table, *wanted: str) -> dict[str, list[int]]:
    by_path = positions_by_path(table, wanted or None)
    return {path: positions.to_array().tolist() for path, positions in by_path.items()}


def test_paths_match_exactly() -> None:
    """DA-10: the same file under another spelling is another file."""
    table = rows(("file:///t/x.parquet", 1), ("file:/t/x.parquet", 2), ("/t/x.parquet", 3))
    assert found_in(table, "file:/t/x.parquet") == {"file:/t/x.parquet": [2]}


@pytest.mark.parametrize("bad", [("a", -1), (None, 1), ("a", None), ("a", 2**63 - 1)])
def test_a_row_without_path_or_position_is_refused(bad: tuple[str | None, int | None]) -> None:
    """DA-8, DA-10: such rows are not skipped. Behind the largest of all numbers a run would end below all others, and
    the rows of the file before it would be back."""
    with pytest.raises(ValueError, match=r"negative|no data file|above"):
        positions_by_path(rows(("a", 1), bad))


def test_largest_position_does_not_affect_other_positions() -> None:
    assert found_in(rows(("a", 2**63 - 2), ("a", 4))) == {"a": [4, 2**63 - 2]}
