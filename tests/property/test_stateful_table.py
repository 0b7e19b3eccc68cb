"""A table under random operations, jobs and races has the rows of the model in every snapshot."""

from __future__ import annotations

import pytest
from example_counts import examples
from fast_lake import fast_lake
from hypothesis import settings
from hypothesis.stateful import invariant, run_state_machine_as_test
from large_inputs import taken_for_large
from soak_figures import count

from tableformat.deletes.spans import coverage
from tableformat.merge_on_read import delete_index
from tableformat.testing.machine import STEP_COUNT, TableMachine, machine_on
from tableformat.testing.ref_machine import RefMachine


def test_random_history_agrees_with_the_model() -> None:
    """DA-1 to DA-4, RD-1 to RD-5, RD-9, RD-10, CP-2 to CP-9, CP-11, FM-20: every snapshot has the rows of the model."""
    run_machine(0.3)


@pytest.mark.slow
def test_random_history_with_large_input_code_paths() -> None:
    """Code that reads together, searches, splits or uses threads from a certain size on; random tables are too small
    for it."""
    with taken_for_large():
        run_machine(0.06)


@pytest.mark.slow
def test_random_history_with_shared_deletes(monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-2, RD-2, RD-10: as if small files and scattered deletes alternated, and each file had many deletes."""
    monkeypatch.setattr(coverage, "_SPANS_OF_FILES_MAX", 0)
    monkeypatch.setattr(delete_index, "SHARED_FROM", 1)
    run_machine(0.06)


@pytest.mark.slow
def test_random_history_with_moved_branches_and_staged_commits() -> None:
    """SP-24, CP-22, CP-23, CF-6, FM-20: tags, any snapshot made current, fast-forwards, staged commits."""
    run_machine(0.06, RefMachine)


def run_machine(share: float, kind: type[TableMachine] = TableMachine) -> None:
    with fast_lake() as catalog:

        class Counted(machine_on(catalog, kind=kind)):  # type: ignore[misc]
            @invariant()
            def count_step(self) -> None:
                count("operations")

        count_of_examples = settings(max_examples=examples(share), stateful_step_count=STEP_COUNT)
        run_state_machine_as_test(Counted, settings=count_of_examples)
