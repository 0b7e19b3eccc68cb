"""Histories of a hundred steps and more of one table, determined by a seed: for states that arise only after many
commits.

Hypothesis draws short tables and shrinks failing ones; drawing takes a large part of each step. Here operations, jobs
and filters are drawn once, and a seed chooses among them. Operations that search for rows are many times as expensive
as the others, so most are blind, as in a table that a stream writes.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from soak_figures import count

from tableformat.testing.acts import Act, InTransaction, Job, OneVerb, jobs
from tableformat.testing.machine import MAIN, SECOND, VARIANTS, TableMachine
from tableformat.testing.strategies import Filter, filters
from tableformat.testing.verbs import Verb, verbs

_Drawn = TypeVar("_Drawn")

_OF_ONE_DRAW: Final = 20
"""The number of values that Hypothesis draws at once, which fits into one example."""
_FIND_ROWS: Final = frozenset({"merge", "update", "overwrite", "delete"})
"""Verbs that read the table before they commit; others do so with some options."""
_FINDING: Final = 0.08
_VERBS_MAX: Final = 16
"""The maximum number of operations in a transaction."""
_KINDS_OF_DELETE: Final = ("range", "equality", "prefix", "values", "scan")
_SNAPSHOTS_MAX: Final = 40
"""All are read when some are to expire."""
_SNAPSHOTS_BOUND: Final = 80
"""With more than 100 snapshots, upkeep expires snapshots by itself (MT-87), which the model does not know."""


@dataclass(frozen=True, slots=True)
class Pools:
    """The pools that histories choose from."""

    blind: Sequence[Verb]
    finding: Sequence[Verb]
    jobs: Sequence[Sequence[Act]]
    """Grouped by name: half of the drawn jobs are conversions, which would otherwise be most jobs of a table."""
    filters: Sequence[Filter]

    @staticmethod
    def drawn(number: int, verb_count: int) -> Pools:
        """The pools for the seed `number`."""
        of_verbs = _drawn(verbs(), number, verb_count)
        return Pools(
            blind=[verb for verb in of_verbs if not _finds_rows(verb)],
            finding=[verb for verb in of_verbs if _finds_rows(verb)],
            jobs=_by_name(_drawn(jobs(), number, verb_count // 10)),
            filters=_drawn(filters(), number, verb_count // 10),
        )

    def verb(self, choice: random.Random) -> Verb:
        return choice.choice(self.finding if choice.random() < _FINDING else self.blind)

    def act(self, choice: random.Random) -> Act:
        kind = choice.random()
        if kind < 0.35:
            return OneVerb(self.verb(choice))
        if kind < 0.9:
            return InTransaction(tuple(self.verb(choice) for _ in range(choice.randint(2, _VERBS_MAX))))
        return self.job(choice)

    def job(self, choice: random.Random) -> Act:
        return choice.choice(choice.choice(self.jobs))


def run_long_history(machine: TableMachine, pools: Pools, choice: random.Random, steps: int) -> None:
    """Run a history of `steps` steps; raises AssertionError if the rows differ from the model."""
    machine.create(variant=choice.choice(VARIANTS), has_many_rows=choice.random() < 0.3)
    for _ in range(steps):
        _step(machine, pools, choice)
        count("operations")
        if len(machine.snapshots) > _SNAPSHOTS_BOUND:
            machine.remove_what_is_old(at=choice.randint(0, 2), retained=choice.randint(1, 3))
        if choice.random() < 0.3:
            machine.heads_have_the_rows_of_the_model()
    machine.heads_have_the_rows_of_the_model()
    machine.teardown()


def _step(machine: TableMachine, pools: Pools, choice: random.Random) -> None:
    """One of the machine's rules, with arguments that the seed chooses."""
    kind, at, pick = choice.random(), choice.randint(0, 2), choice.randint(0, 15)
    others = [pools.act(choice) for _ in range(choice.randint(0, 2))]
    if kind < 0.8:
        machine.perform(at, pools.act(choice))
    elif kind < 0.88:
        machine.perform(at, pools.act(choice), others)
    elif kind < 0.89 and machine.heads[MAIN] is not None:
        machine.race_with_rollback(at=at, act=pools.act(choice), others=others[:1], pick=pick % 4)
    elif kind < 0.95 and machine.rows_of_main:
        machine.delete_row(at=at, pick=pick, kind=choice.choice(_KINDS_OF_DELETE))
    elif kind < 0.97 and machine.rows_of_main:
        machine.race_with_delete(
            at=at,
            planned=pools.job(choice),
            pick=pick,
            kind=choice.choice(_KINDS_OF_DELETE),
            converts=choice.random() < 0.7,
        )
    elif len(machine.snapshots) > _SNAPSHOTS_MAX:
        machine.remove_what_is_old(at=at, retained=choice.randint(1, 3))
    elif machine.heads[MAIN] is not None and SECOND not in machine.heads:
        machine.start_second_branch(at=at)
    else:
        machine.heads_have_the_rows_of_the_model()
        machine.read_filtered(
            where=choice.choice(pools.filters),
            branch=choice.choice([MAIN, SECOND]),
            with_duckdb=choice.random() < 0.3,
        )


def _finds_rows(verb: Verb) -> bool:
    return verb.name in _FIND_ROWS or "on_duplicate" in verb.options or verb.mode == "scan"


def _by_name(drawn: Sequence[Act]) -> list[list[Act]]:
    by_name = defaultdict(list)
    for job in drawn:
        by_name[job.name if isinstance(job, Job) else type(job).__name__].append(job)
    return list(by_name.values())


def _drawn(strategy: st.SearchStrategy[_Drawn], number: int, size: int) -> list[_Drawn]:
    """About `size` values."""
    found: list[_Drawn] = []

    @seed(number)
    @settings(
        max_examples=max(1, size // _OF_ONE_DRAW),
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(strategy, min_size=_OF_ONE_DRAW, max_size=_OF_ONE_DRAW))
    def draw(drawn: list[_Drawn]) -> None:
        found.extend(drawn)

    draw()
    return found
