"""Tables of any columns, whose schema, spec, version and branches change under verbs and jobs, at every door."""

from __future__ import annotations

import random
from contextlib import nullcontext

import pytest
from evolving_checks import Checks
from evolving_steps import act, change_spec, step
from evolving_tables import EvolvingTable
from example_counts import examples
from fast_lake import fast_lake
from hypothesis import given, settings
from hypothesis import strategies as st
from large_inputs import taken_for_large
from soak_figures import count

STEPS = 12
STEPS_BETWEEN_ALL_CHECKS = 4


@pytest.mark.slow
@settings(max_examples=examples(0.1))
@given(seed=st.integers(0, 2**63), is_large=st.booleans())
def test_every_door_has_the_rows_of_a_table_that_evolves(seed: int, is_large: bool) -> None:
    """CF-1 to CF-6, CP-35 to CP-37, DA-1 to DA-4, FM-20, FM-21, RD-4: scans and snapshots, filters, the change feed
    between any two snapshots, lookups, row lineage, DuckDB with filters, aggregates and time travel, a deep
    verification, and what was staged, held or half-read before the table changed.

    Examples are numbers, since what follows from them is too long to be made smaller; the log says what was done.
    """
    with taken_for_large() if is_large else nullcontext(), fast_lake() as catalog:
        known = EvolvingTable(catalog, "db.t", random.Random(seed))
        try:
            run(known)
        except Exception as error:
            error.add_note("\n".join(known.log))
            raise


def run(known: EvolvingTable) -> None:
    known.create()
    if known.random.random() < 0.5:
        change_spec(known)
    act(known)
    checks = Checks(known)
    for number in range(1, STEPS + 1):
        step(known)
        count("operations")
        checks.heads()
        if number % STEPS_BETWEEN_ALL_CHECKS == 0:
            checks.all()
    checks.close()
