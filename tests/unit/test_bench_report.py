"""The parts of the benchmark report, without running a benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from report.figures import Measurements

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def measured(cpu_seconds: dict[str, float]) -> Measurements:
    from report.figures import Measurements

    measurements = Measurements()
    for system, seconds in cpu_seconds.items():
        measurements.add("verbs", "scan", system, (2 * seconds, seconds))
    return measurements


def test_a_row_that_has_another_ones_value_is_a_wrong_answer() -> None:
    from report.digests import differences, digest

    rows = pa.table({"id": ["a", "b", "c"], "n": [1, 2, 3], "amount": [10.0, 20.0, 30.0]})
    other_order = rows.take([2, 0, 1])
    swapped = rows.set_column(2, "amount", pa.array([10.0, 30.0, 20.0]))
    assert differences(digest(other_order), digest(rows)) == []
    assert differences(digest(swapped), digest(rows)) == ["together is 130, not 140"]
    assert "rows is 2, not 3" in differences(digest(rows.slice(1)), digest(rows))


def test_others_are_multiples_of_ours() -> None:
    from report.rendering.tables import table

    assert table(measured({"PyIceberg": 3.0, "tableformat": 2.0}), "verbs") == [
        "| | tableformat, s CPU (wall) | PyIceberg |",
        "|---|---|---|",
        "| scan | 2.00 (4.00) | 1.5 x (1.5 x) |",
    ]


def test_the_report_says_where_we_are_behind() -> None:
    from report.rendering.tables import behind

    measurements = measured({"tableformat": 2.0, "DuckLake": 1.0, "PyIceberg": 3.0, "the bare files": 0.5})
    assert behind(measurements, "verbs", ("the bare files",)) == [
        "scan: tableformat took 2.0 times the CPU time of DuckLake"
    ]
    assert behind(measured({"tableformat": 2.0, "PyIceberg": 1.95}), "verbs", ()) == []


def test_what_a_workload_leaves_over_goes_to_the_next() -> None:
    from report.budget import Budget

    budget = Budget(1, {"first": 1, "second": 2})
    assert budget.deadline("first").seconds == pytest.approx(20, abs=1)
    assert budget.deadline("second").seconds == pytest.approx(60, abs=1)
