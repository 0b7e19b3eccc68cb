"""Tables with a hundred steps and more have the rows of the model in every snapshot."""

from __future__ import annotations

import random

import pytest
from example_counts import examples
from fast_lake import fast_lake
from hypothesis import settings
from long_histories import Pools, run_long_history
from soak_figures import count, soak_seed

from tableformat import Table
from tableformat.testing.acts import Act
from tableformat.testing.machine import TableMachine, machine_on

STEPS = 100


class _Counted(TableMachine):
    """Counts operations: a transaction has several."""

    one_of_those_that_go = 2
    follows = 0

    def perform(self, at: int, act: Act, *others: object, **options: object) -> None:
        count("verbs and jobs", max(1, len(act.verbs)))
        super().perform(at, act, *others, **options)  # type: ignore[arg-type]

    def read_all(self, one_of: int = 1) -> None:
        """A third of them: reading each of 80 snapshots, and their feed, was two thirds of a history."""
        super().read_all(one_of=3 * one_of)

    def follow(self, reader: Table) -> None:
        self.follows += 1
        if self.follows % 3 == 0:
            super().follow(reader)


@pytest.mark.slow
def test_long_history_agrees_with_the_model() -> None:
    """DA-1 to DA-4, RD-1 to RD-5, RD-9, RD-10, CP-2 to CP-9, CF-6, FM-20, MT-1: as the stateful test, for longer."""
    number = int(soak_seed("1") or 1)
    choice = random.Random(number)
    pools = Pools.drawn(number, verb_count=min(4000, 20 * settings().max_examples))
    with fast_lake() as catalog:
        machine = machine_on(catalog, kind=_Counted)
        for _ in range(examples(0.02)):
            run_long_history(machine(), pools, choice, STEPS)
