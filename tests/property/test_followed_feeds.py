"""Followers of the change feed of an evolving table, and the row ids of such a table."""

from __future__ import annotations

import random
from contextlib import nullcontext

import pytest
from evolving_feeds import Followers, LineageOfAll
from evolving_steps import begin, step
from evolving_tables import EvolvingTable
from example_counts import examples
from fast_lake import fast_lake
from history_error_notes import told_with
from hypothesis import given, settings
from hypothesis import strategies as st
from large_inputs import taken_for_large
from soak_figures import count

STEPS = 12
STEPS_BETWEEN_LINEAGE = 4


@pytest.mark.slow
@settings(max_examples=examples(0.08))
@given(seed=st.integers(0, 2**63), is_large=st.booleans())
def test_copy_built_from_the_change_feed_equals_the_table(seed: int, is_large: bool) -> None:
    """CF-1, CF-2, CF-6, CF-9, FM-20: in one step and in several, from an id and from a time, and by key. After
    rollbacks, expiries and moved branches the feed continues, or names a correct new start. Row ids are assigned once
    over all branches, and unchanged rows keep theirs."""
    with taken_for_large() if is_large else nullcontext(), fast_lake() as catalog:
        known = EvolvingTable(catalog, "db.t", random.Random(seed))
        with told_with(known.log):
            run(known)


def run(known: EvolvingTable) -> None:
    begin(known)
    followers, lineage = Followers(known), LineageOfAll(known)
    for number in range(1, STEPS + 1):
        step(known)
        followers.step()
        count("operations")
        if number % STEPS_BETWEEN_LINEAGE == 0:
            lineage.check()
