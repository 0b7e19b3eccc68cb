"""For all operations, jobs and races, a verification finds no error in any snapshot of the table."""

from __future__ import annotations

import pytest
from example_counts import examples
from fast_lake import fast_lake
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tableformat.maintenance.verification.findings import FindingKind
from tableformat.testing.machine import STEP_COUNT, machine_on


@pytest.mark.slow
def test_random_histories_verify_without_findings() -> None:
    """MT-70 to MT-75: a finding is either a mistake of a writer or one of the verification."""
    snapshot_count = 0
    with fast_lake() as catalog:

        class Verified(machine_on(catalog)):  # type: ignore[misc]
            def teardown(self) -> None:
                nonlocal snapshot_count
                try:
                    if self.handles:
                        found = self.handles[0].refresh().verify(deep=True)
                        snapshot_count += found.snapshot_count
                        assert found.is_clean, str(found)
                        assert {each.kind for each in found.warnings} <= {FindingKind.DEAD_DELETE}, str(found)
                finally:
                    super().teardown()

        run_state_machine_as_test(
            Verified, settings=settings(stateful_step_count=STEP_COUNT, max_examples=examples(0.16))
        )
    assert snapshot_count > examples(0.16)
