"""The stateful test quickly finds each mistake that similar formats have made: a test of the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fast_lake import fast_lake
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test
from long_forms import every

from tableformat.testing.machine import STEP_COUNT, machine_on
from tableformat.testing.mistakes import MISTAKES, Mistake

BUDGET = settings(
    max_examples=100,
    stateful_step_count=STEP_COUNT,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
"""Two runs of `make test` give the correct machine the same number of random tables and steps, and find nothing. Most
mistakes are found after a few tables; a mistake that needs a race or a file of several row groups may take ninety."""


@pytest.mark.slow
@pytest.mark.parametrize("mistake", every(6, MISTAKES), ids=lambda mistake: mistake.name)
def test_injected_mistakes_are_detected_within_the_budget(mistake: Mistake) -> None:
    """RD-1, RD-2, RD-4, DA-1, DA-2, DA-4, DA-7, CP-3, CP-7, CP-11, CP-22, CF-3, FM-20: broken, the two differ."""
    with fast_lake() as catalog, mistake.made(), pytest.raises((AssertionError, Flaky)) as found:
        run_state_machine_as_test(machine_on(catalog), settings=BUDGET)
    # A mistake may show in one run of an example and not in the next: threads share what they have found.
    assert any(isinstance(each, AssertionError) for each in _chain(found.value))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error, the errors in its group, its causes, and the errors that were being handled when it was raised."""
    while error is not None:
        yield error
        for each in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
            yield from _chain(each)
        error = error.__cause__ or error.__context__
