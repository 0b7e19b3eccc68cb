"""Range partitions over integers as a set of numbers and borders, with a table to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

import tableformat as tf
from tableformat.errors import InvalidArgumentError, UncoveredRowsError
from tableformat.testing.table_rows import live_tuples

SIZE = 24
"""Numbers 0 to SIZE - 1 are all that there is."""
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64(), nullable=False)])


class ImpossibleError(Exception):
    """The change is not possible."""


@dataclass(frozen=True)
class Existing:
    """The numbers that exist, and the numbers at which partitions begin."""

    numbers: frozenset[int] = frozenset()
    borders: frozenset[int] = frozenset()
    step: int | None = None
    """Partitions also begin at its multiples, regardless of merges."""

    def partitions(self) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for number in sorted(self.numbers):
            if found and found[-1][1] == number and not self._is_border(number):
                found[-1] = (found[-1][0], number + 1)
            else:
                found.append((number, number + 1))
        return found

    def added(self, lower: int, upper: int) -> Existing:
        if lower >= upper or self.numbers & set(range(lower, upper)):
            raise ImpossibleError
        borders = {border for border in self.borders if not lower < border < upper} | {lower, upper}
        return replace(self, numbers=self.numbers | set(range(lower, upper)), borders=frozenset(borders))

    def with_steps_of(self, numbers: Iterable[int]) -> Existing:
        """With the missing parts of the steps that contain the numbers."""
        assert self.step is not None, "asked of steps"
        after = self
        for begin in sorted({number // self.step * self.step for number in numbers}):
            missing = Existing(frozenset(range(begin, begin + self.step)) - self.numbers)
            for lower, upper in missing.partitions():
                after = after.added(lower, upper)
        return after

    def demanded_by(self, numbers: Iterable[int]) -> Existing:
        """With the steps of these numbers that are added on demand."""
        missing = set(numbers) - self.numbers
        return self.with_steps_of(missing) if missing and self.step is not None else self

    def dropped(self, lower: int, upper: int) -> Existing:
        self._check_whole(lower, upper)
        left = self.numbers - set(range(lower, upper))
        return replace(self, numbers=left, borders=self.borders | {lower, upper})

    def divided(self, at: int) -> Existing:
        if not {at - 1, at} <= self.numbers or self._is_border(at):
            raise ImpossibleError
        return replace(self, borders=self.borders | {at})

    def merged(self, lower: int, upper: int) -> Existing:
        self._check_whole(lower, upper)
        inside = {border for border in self.borders if lower < border < upper and not self._begins_a_step(border)}
        if not inside:
            raise ImpossibleError
        return replace(self, borders=self.borders - inside)

    def _is_border(self, number: int) -> bool:
        return number in self.borders or self._begins_a_step(number)

    def _begins_a_step(self, number: int) -> bool:
        return self.step is not None and number % self.step == 0

    def _check_whole(self, lower: int, upper: int) -> None:
        ends = {end for partition in self.partitions() for end in partition}
        if lower >= upper or not {lower, upper} <= ends or not set(range(lower, upper)) <= self.numbers:
            raise ImpossibleError


@dataclass
class World:
    """A table and what it should be, after every step of a history."""

    table: tf.Table
    existing: Existing
    rows: dict[int, int] = field(default_factory=dict)
    """id -> n"""
    snapshots: list[tuple[int | None, dict[int, int], Existing | None]] = field(default_factory=list)
    """The id, the rows after it, and the ranges before it if it changed them."""
    retired: dict[str, tuple[dict[int, int], int, int]] = field(default_factory=dict)
    past: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Snapshot id -> the partitions when it was committed."""
    other: World | None = None
    """Another branch: other rows and snapshots; what exists is the table's."""

    @classmethod
    def on_demand(cls, catalog: tf.Catalog, name: str, version: str) -> World:
        """Steps of four are added on demand, and a window keeps two of them and one ahead."""
        steps = tf.RangePartitions(on=["n"], bounds=[(2, 10)], step=4, on_demand=True, retain=8, ahead=1)
        options = {"format-version": version, "commit.retry.min-wait-ms": "1"}
        table = catalog.create_table(name, SCHEMA, key=["id"], range_partitions=steps, properties=options)
        return cls(table, Existing(frozenset(range(2, 10)), frozenset({2, 10}), 4))

    @classmethod
    def made(cls, catalog: tf.Catalog, name: str, version: str) -> World:
        bounds = tf.RangePartitions(on=["n"], bounds=[(2, 10), (14, 20)], splits=[6])
        options = {
            "format-version": version,
            "commit.retry.min-wait-ms": "1",
            "write.metadata.previous-versions-max": "100",
        }
        table = catalog.create_table(name, SCHEMA, key=["id"], range_partitions=bounds, properties=options)
        existing = Existing(frozenset({*range(2, 10), *range(14, 20)}), frozenset({2, 6, 10, 14, 20}))
        return cls(table, existing)

    def check(self) -> None:
        """Check that rows and partitions equal the model's, for the other branch too."""
        assert live_tuples(self.table) == sorted(self.rows.items())
        if self.other is not None:
            assert live_tuples(self.other.table.refresh()) == sorted(self.other.rows.items())
        listed = self.table.range_partitions.list().to_pylist()
        found = [(each["lower"], each["upper"]) for each in listed if each["state"] not in ("uncovered", "retired")]
        assert found == self.existing.partitions()
        retired = {each["tag"]: (each["lower"], each["upper"]) for each in listed if each["state"] == "retired"}
        known = {tag: (lower, upper) for tag, (_, lower, upper) in self.retired.items()}
        assert retired == known if self.other is None else retired.items() <= known.items()

    def check_past(self) -> None:
        """RP-32: the list at each snapshot has the partitions at its commit; the list at the head has the current
        partitions."""
        for snapshot_id, then in self.past.items():
            expected = self.existing.partitions() if snapshot_id == self.table.snapshot_id else then
            listed = self.table.range_partitions.list(snapshot_id=snapshot_id).to_pylist()
            found = [(each["lower"], each["upper"]) for each in listed if each["state"] not in ("uncovered", "retired")]
            assert found == expected

    def step(self, verb: str, *arguments: Any) -> None:
        getattr(self, f"_{verb}")(*arguments)
        self.check()

    def _branch(self) -> None:
        """Continue on the other branch, which is created here the first time."""
        if self.table.snapshot_id is None:
            return
        if self.other is None:
            self.table.create_branch("b")
            assert self.table.catalog is not None, "of a table that was created here"
            branch = self.table.catalog.load_table(self.table.name, branch="b")
            assert isinstance(branch, tf.Table), "as writers have it"
            self.other = World(branch, self.existing, dict(self.rows), list(self.snapshots))
        other = self.other
        self.table, other.table = other.table.refresh(), self.table
        self.rows, other.rows = other.rows, self.rows
        self.snapshots, other.snapshots = other.snapshots, self.snapshots

    def _advance(self, now: int) -> None:
        before = self.existing
        old = [(lower, upper) for lower, upper in before.partitions() if upper <= now - 8]
        after = before
        for lower, upper in old:
            after = after.dropped(lower, upper)
        result = self.table.range_partitions.advance(now=now)
        assert len(result.dropped) == len(old)
        self.existing = after.with_steps_of([now, now + 4])
        gone = {number for lower, upper in old for number in range(lower, upper)}
        self.rows = {key: number for key, number in self.rows.items() if number not in gone}
        self._note(before)

    def _write(self, verb: str, given: dict[int, int]) -> None:
        existing = self.existing
        if existing.step is not None:
            self.existing = existing.with_steps_of(set(given.values()) - existing.numbers)
        self._write_covered(verb, given, existing)

    def _write_covered(self, verb: str, given: dict[int, int], existing: Existing) -> None:
        batch = pa.table({"id": list(given), "n": list(given.values())}, schema=SCHEMA)
        refused = {key for key, number in given.items() if number not in self.existing.numbers}
        before = self.table.snapshot_id
        if refused:
            try:
                getattr(self.table, verb)(batch)
            except UncoveredRowsError as error:
                assert {each["row"]["id"] for each in error.refused.to_pylist()} == refused  # noqa: PT017
            else:
                raise AssertionError("rows that nothing covers were committed")
            assert self.table.snapshot_id == before
        result = getattr(self.table, verb)(batch, on_refused="divert")
        assert (set() if result.refused is None else set(result.refused["id"].to_pylist())) == refused
        self.rows = {**self.rows, **{key: number for key, number in given.items() if key not in refused}}
        self._note(existing if self.existing != existing else None)

    def _replace(self, given: dict[int, int]) -> None:
        self._write("replace", given)

    def _upsert(self, given: dict[int, int]) -> None:
        self._write("upsert", given)

    def _update(self, lower: int, upper: int, number: int) -> None:
        """Move rows to a number that exists, or whose step is added with them."""
        moved = {key: number for key, old in self.rows.items() if lower <= old < upper}
        self._all_or_none(lambda: self.table.update(f"n >= {lower} AND n < {upper}", set={"n": number}), moved)

    def _merge(self, given: dict[int, int]) -> None:
        batch = pa.table({"id": list(given), "n": list(given.values())}, schema=SCHEMA)
        statement = self.table.merge(batch, on=["id"]).when_matched_update_all().when_not_matched_insert_all()
        self._all_or_none(statement.execute, given)

    def _interval(self, lower: int, upper: int, given: dict[int, int], blind: bool) -> None:
        """New rows lie inside, and have no key of a row outside."""
        if lower >= upper:
            return
        outside = {key: number for key, number in self.rows.items() if not lower <= number < upper}
        new = {key: lower + number % (upper - lower) for key, number in given.items() if key not in outside}
        batch = pa.table({"id": list(new), "n": list(new.values())}, schema=SCHEMA)

        def replace_interval() -> None:
            self.table.replace_interval(batch, on="n", lower=lower, upper=upper, blind=blind)

        self._all_or_none(replace_interval, new, left=outside)

    def _staged(self, given: dict[int, int], between: tuple[str, int, int]) -> None:
        """RP-6: what exists may change between the writing of rows and their commit."""
        existing = self.existing.demanded_by(given.values())
        if not set(given.values()) <= existing.numbers:
            return
        write = self.table.new_write(kind="replace")
        staged = write.write(pa.table({"id": list(given), "n": list(given.values())}, schema=SCHEMA))
        self._alter(*between)
        before = self.existing
        self.existing = before.demanded_by(given.values())
        try:
            self.table.commit(write, [staged])
        except UncoveredRowsError:
            # A file of rows on both sides of what was dropped since cannot be held against it.
            self.existing = before
            return
        assert set(given.values()) <= self.existing.numbers, "rows that nothing covers were committed"
        self.rows = {**self.rows, **given}
        self._note(before if before != self.existing else None)

    def _all_or_none(
        self, call: Callable[[], object], new: dict[int, int], *, left: dict[int, int] | None = None
    ) -> None:
        """Run an operation that is rejected if one of its rows is."""
        before, snapshot_id = self.existing, self.table.snapshot_id
        existing = before.demanded_by(new.values())
        if not set(new.values()) <= existing.numbers:
            try:
                call()
            except UncoveredRowsError:
                assert self.table.refresh().snapshot_id == snapshot_id
                return
            raise AssertionError("rows that nothing covers were committed")
        call()
        self.existing = existing
        self.rows = {**(self.rows if left is None else left), **new}
        self._note(before if before != existing else None)

    def _delete(self, lower: int, upper: int) -> None:
        self.table.delete(f"n >= {lower} AND n < {upper}")
        self.rows = {key: number for key, number in self.rows.items() if not lower <= number < upper}
        self._note(None)

    def _alter(self, kind: str, *arguments: int) -> None:
        """add, drop, split, merge"""
        model = {"add": "added", "drop": "dropped", "split": "divided", "merge": "merged"}[kind]
        before = self.existing
        try:
            after = getattr(before, model)(*arguments)
        except ImpossibleError:
            location = self.table.iceberg.metadata_location
            try:
                getattr(self.table.range_partitions, kind)(*arguments)
            except InvalidArgumentError:
                assert self.table.iceberg.metadata_location == location
                return
            raise AssertionError(f"{kind}{arguments} is impossible and was done") from None
        result = getattr(self.table.range_partitions, kind)(*arguments)
        self.existing = after
        assert (result.snapshot_id is not None) == (kind == "drop")
        if kind == "drop":
            lower, upper = arguments
            self.rows = {key: number for key, number in self.rows.items() if not lower <= number < upper}
            self._note(before)

    def _retire(self, index: int) -> None:
        partitions = self.existing.partitions()
        if not partitions or self.table.snapshot_id is None:
            return
        lower, upper = partitions[index % len(partitions)]
        before = self.existing
        try:
            result = self.table.range_partitions.retire(lower, upper)
        except InvalidArgumentError as error:
            assert "rows both inside and outside" in str(error)  # noqa: PT017
            return
        assert result.tag is not None
        self.retired[result.tag] = ({k: n for k, n in self.rows.items() if lower <= n < upper}, lower, upper)
        self.existing = before.dropped(lower, upper)
        self.rows = {key: number for key, number in self.rows.items() if not lower <= number < upper}
        self._note(before)

    def _restore(self) -> None:
        if not self.retired:
            return
        tag, (rows, lower, upper) = next(iter(self.retired.items()))
        before = self.existing
        try:
            after = before.added(lower, upper)
        except ImpossibleError:
            return
        self.table.range_partitions.restore(tag, deletes="ignore")
        del self.retired[tag]
        self.existing = after
        self.rows = {**self.rows, **rows}
        self._note(before)

    def _rollback(self, index: int) -> None:
        if len(self.snapshots) < 2 or self.retired:
            return
        target = index % len(self.snapshots)
        snapshot_id, rows, _ = self.snapshots[target]
        told = [before for _, _, before in self.snapshots[target + 1 :] if before is not None]
        self.table.rollback(snapshot_id=snapshot_id)
        self.existing = told[0] if told else self.existing
        self.rows, self.snapshots = dict(rows), self.snapshots[: target + 1]

    def _compact(self) -> None:
        self.table.maintenance.compact(rewrite_all=True)
        self.table.refresh()
        self._note(None)

    def _convert(self) -> None:
        self.table.maintenance.convert_deletes()
        self.table.refresh()
        self._note(None)

    def _note(self, changed: Existing | None) -> None:
        self.table.refresh()
        snapshot_id = self.table.snapshot_id
        if snapshot_id is not None:
            self.past.setdefault(snapshot_id, self.existing.partitions())
        if snapshot_id is not None and (not self.snapshots or self.snapshots[-1][0] != snapshot_id):
            self.snapshots.append((snapshot_id, dict(self.rows), changed))
