"""Every picture under `spans/`: the operation it names, on the spans it draws, gives the result it draws.

`TABLEFORMAT_REGENERATE_GOLDEN=1 pytest tests/golden` writes the results anew; read the difference before you keep it.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from span_pictures import Case, draw_spans, read_case, write_result

from tableformat.deletes.matching.range_match import deleted_mask, deleted_runs
from tableformat.deletes.spans.coverage import classify
from tableformat.deletes.spans.skyline import skyline
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge
from tableformat.metadata.content_file import DataFile

CASES = sorted((Path(__file__).parent / "spans").glob("*.txt"))
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def classify_file(case: Case) -> str:
    """`classify file=3 lower=c upper=g`: the verdict on a file of sequence number 3 with these bounds."""
    data = DataFile(
        file_path="data/1.parquet",
        file_format="PARQUET",
        spec_id=0,
        record_count=2,
        file_size_bytes=1,
        sequence_number=int(case.arguments["file"]),
        value_counts={1: 2},
        null_value_counts={1: 0},
        lower_bounds={1: case.arguments["lower"].encode()},
        upper_bounds={1: case.arguments["upper"].encode()},
    )
    coverage, spans = classify(skyline(case.spans), data)
    return f"{coverage.value}\n{draw_spans(spans)}"


def delete_rows(case: Case) -> str:
    """`delete file=3`: rows a to z of a file of sequence number 3, x where the row is deleted."""
    fragments = skyline(case.spans)
    assert fragments.sequence_numbers is not None
    newer = fragments.take(np.flatnonzero(fragments.sequence_numbers > int(case.arguments["file"])))
    rows = pa.array(list(LETTERS))
    mask = deleted_mask([rows], newer)
    starts, ends = deleted_runs([rows], newer)
    assert [place for start, end in zip(starts, ends, strict=True) for place in range(start, end)] == list(
        np.flatnonzero(mask)
    )
    return f"   {LETTERS}\n   {''.join('x' if deleted else '.' for deleted in mask)}\n"


def merge(case: Case) -> str:
    numbers = case.spans.sequence_numbers
    assert numbers is not None
    return draw_spans(sort_and_merge(SpanArray(case.spans.key, case.spans.lower, case.spans.upper, numbers)))


OPERATIONS = {
    "skyline": lambda case: draw_spans(skyline(case.spans)),
    "sort_and_merge": merge,
    "classify": classify_file,
    "delete": delete_rows,
}


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_span_operation_matches_its_picture(path: Path) -> None:
    """RD-2, RD-7, RD-9, RD-10, RD-12: what the picture shows."""
    case = read_case(path)
    result = OPERATIONS[case.operation](case)
    if os.environ.get("TABLEFORMAT_REGENERATE_GOLDEN"):
        write_result(path, result)
    assert result == read_case(path).result


def test_span_pictures_exist() -> None:
    assert {"overlap", "covered_by_two"} <= {path.stem for path in CASES}
