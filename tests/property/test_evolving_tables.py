"""Tables of random columns whose schema, spec, version and branches change between operations and jobs, through every
entry point."""

from __future__ import annotations

import random
from contextlib import nullcontext

import pytest
from evolving_checks import Checks, same
from evolving_operations import append
from evolving_steps import act, begin, change_key, change_schema, change_spec, run_job, step, upgrade
from evolving_tables import MAIN, EvolvingTable
from evolving_values import Rows
from example_counts import examples
from fast_lake import fast_lake
from history_error_notes import told_with
from hypothesis import given, settings
from hypothesis import strategies as st
from large_inputs import taken_for_large
from soak_figures import count

STEPS = 12
STEPS_BETWEEN_ALL_CHECKS = 4
INGEST = "ingest"


@pytest.mark.slow
@settings(max_examples=examples(0.1))
@given(seed=st.integers(0, 2**63), is_large=st.booleans())
def test_all_readers_agree_after_schema_evolution(seed: int, is_large: bool) -> None:
    """CF-1 to CF-6, CP-35 to CP-37, DA-1 to DA-4, FM-20, FM-21, RD-4: scans and snapshots, filters, the change feed
    between any two snapshots, and lookups. Also row lineage, DuckDB with filters, aggregates and time travel, a deep
    verification, and staged, held or half-read objects from before the table changed.

    An example is a number, because the steps that follow from it are too long to shrink; the log lists the steps.
    """
    with taken_for_large() if is_large else nullcontext(), fast_lake() as catalog:
        known = EvolvingTable(catalog, "db.t", random.Random(seed))
        with told_with(known.log):
            run(known)


def run(known: EvolvingTable) -> None:
    begin(known)
    checks = Checks(known)
    for number in range(1, STEPS + 1):
        step(known)
        count("operations")
        checks.heads()
        if number % STEPS_BETWEEN_ALL_CHECKS == 0:
            checks.all()
    checks.close()


@pytest.mark.slow
@settings(max_examples=examples(0.06))
@given(seed=st.integers(0, 2**63))
def test_publish_merges_rows_of_branch_and_target(seed: int) -> None:
    """MT-30 to MT-33: regardless of the columns, partitions and version at the time of the publish."""
    with fast_lake() as catalog:
        known = EvolvingTable(catalog, "db.t", random.Random(seed))
        try:
            run_publishing(known)
        except Exception as error:
            error.add_note("\n".join(known.log))
            raise


def run_publishing(known: EvolvingTable) -> None:
    known.create()
    known.branches = [INGEST]
    table = known.handle()
    table.set_properties({"tableformat.upkeep": "off"})
    append_to(known, MAIN)
    known.handle().create_branch(INGEST).set_properties({f"tableformat.publish-target.{INGEST}": MAIN})
    evolutions = (change_schema, change_spec, change_key, upgrade)
    came: Rows = ()
    for _ in range(STEPS):
        kind = known.random.choice(("act", "act", "act", "job", "target", "evolve", "evolve", "publish"))
        if kind == "target":
            before = known.rows_of(known.handle())
            came += append_to(known, MAIN)[len(before) :]
        elif kind == "publish":
            publish(known, came)
            came = ()
        elif kind == "evolve":
            known.random.choice(evolutions)(known)
        elif came:
            # A delete of the branch, which does not have the rows yet, may or may not include them.
            append_to(known, INGEST)
        else:
            (act if kind == "act" else run_job)(known)
        count("operations")
        for branch in (MAIN, INGEST):
            handle = known.handle(branch)
            same(handle.scan().to_arrow(), known.rows_of(handle), handle.metadata.schema(), f"head of {branch}")
    publish(known, came)
    checks = Checks(known)
    checks.all()
    checks.close()


def append_to(known: EvolvingTable, branch: str) -> Rows:
    table = known.handle(branch)
    known.log.append(f"to {branch}:")
    rows = append(known, table, known.rows_of(table))
    known.settle(known.handle(branch), rows)
    return rows


def publish(known: EvolvingTable, came: Rows) -> None:
    known.log.append("publish")
    rows = known.rows_of(known.handle(INGEST)) + came
    result = known.handle().maintenance.publish(INGEST)
    known.settle(known.handle(INGEST), rows)
    table = known.handle()
    assert table.snapshot_id == result.snapshot_id
    same(table.scan().to_arrow(), rows, table.metadata.schema(), "rows that were published")
    assert not [each for each in table.inspect.delete_files()["kind"].to_pylist() if each in ("range", "equality")]
