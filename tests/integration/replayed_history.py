"""The history of a table that many processes wrote to, replayed on the in-memory model.

The summary of every writer's snapshot describes the operation. The operations are replayed in the order of the
snapshots, and must give the rows of every snapshot: the history is serializable in commit order. A maintenance job has
no description, and must not change any row.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyiceberg.table.snapshots import Snapshot

import tableformat as tf
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.testing.key_order import Row, fingerprint
from tableformat.testing.model import ModelVerbs

ACT = "act"
"""The property of the summary."""
SHARED = "shared"
"""The application whose batches several processes try to commit."""
COLUMNS = ("g", "k", "v")
KEY = ("g", "k")

Rows = tuple[Row, ...]


def condition_text(condition: Mapping[str, int]) -> str:
    return f"g = {condition['group']} AND k >= {condition['lower']} AND k < {condition['upper']}"


def condition_of_row(condition: Mapping[str, int]) -> Callable[[Row], bool]:
    return lambda row: row["g"] == condition["group"] and condition["lower"] <= row["k"] < condition["upper"]


class ReplayedHistory:
    """How far the history was replayed, and what it held."""

    def __init__(self) -> None:
        self.checked: list[int] = []
        """Snapshot ids, oldest first."""
        self.snapshot_of: dict[str, int] = {}
        """Value of an act -> its snapshot."""
        self.batches: dict[tuple[str, int], str] = {}
        """Application and batch -> the value of the act that committed it."""
        self._rows: dict[int, Rows] = {0: ()}
        """Sequence number -> rows. Those that an act may have read."""

    @property
    def rows(self) -> Rows:
        """After the last snapshot that was replayed."""
        return next(reversed(self._rows.values()))

    def advance(self, table: tf.Table) -> None:
        """Replay up to the handle's snapshot. AssertionError when a snapshot has other rows than the model."""
        for snapshot in self._new_snapshots(table):
            found = fingerprint(table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist(), COLUMNS)
            noted = json.loads((snapshot.summary or {}).get(ACT) or "null")
            after = self._matching(noted, found) if noted else self.rows
            want = fingerprint(after, COLUMNS)
            assert want == found, (
                f"snapshot {snapshot.snapshot_id} is not what {noted} makes of the one before: "
                f"missing {want - found}, too many {found - want}"
            )
            self.checked.append(snapshot.snapshot_id)
            self._rows[snapshot.sequence_number or 0] = after
            if noted:
                self._note(noted, snapshot.snapshot_id)

    def check_calls(self, calls: Iterable[Any]) -> None:
        """Every acknowledged commit is in the table once, and no rejected one is."""
        committed = {}
        for call in calls:
            if call.outcome == "committed":
                assert call.value not in committed
                committed[call.value] = call.snapshot_id
        wrong = set(committed.items()) ^ set(self.snapshot_of.items())
        assert not wrong, f"acknowledged and not there, or there and not acknowledged: {sorted(wrong)}"

    def _new_snapshots(self, table: tf.Table) -> list[Snapshot]:
        known = self.checked[-1] if self.checked else None
        line: list[Snapshot] = []
        for snapshot in ancestors(table.metadata, table.view.snapshot):
            if snapshot.snapshot_id == known:
                return line[::-1]
            line.append(snapshot)
        assert known is None, f"snapshot {known}, which was replayed, is not in the line of {table.snapshot_id}"
        return line[::-1]

    def _matching(self, noted: dict[str, Any], found: Counter[tuple[Any, ...]]) -> Rows:
        """CP-5: existing keys are looked up in a snapshot between the call and the commit; everything else happens as
        if at the time of the commit."""
        ignoring = any(verb.get("on_duplicate") == "ignore" for verb in noted["verbs"])
        if not ignoring:
            return apply(noted["verbs"], self.rows)
        (verb,) = noted["verbs"]
        # Expired or not, a state that was read lies at or after what the writer had seen when it called.
        for read in list(self._states_since(noted["seen"])):
            there = {(row["g"], row["k"]) for row in read}
            new = [row for row in as_rows(verb["rows"]) if (row["g"], row["k"]) not in there]
            after = (*self.rows, *new)
            if fingerprint(after, COLUMNS) == found:
                return after
        return apply(noted["verbs"], self.rows)

    def _states_since(self, number: int) -> Iterator[Rows]:
        for of_state in reversed(self._rows):
            yield self._rows[of_state]
            if of_state <= number:
                return

    def _note(self, noted: dict[str, Any], snapshot_id: int) -> None:
        value = noted["value"]
        assert value not in self.snapshot_of, f"{value} was committed twice"
        self.snapshot_of[value] = snapshot_id
        if noted["batch"]:
            batch = (noted["batch"]["application_id"], noted["batch"]["batch_id"])
            assert batch not in self.batches, f"{batch} was committed by {self.batches[batch]} and by {value}"
            self.batches[batch] = value


def apply(verbs: Sequence[Mapping[str, Any]], rows: Rows) -> Rows:
    """The rows after the operations."""
    model = ModelVerbs(COLUMNS, KEY, list(rows))
    for verb in verbs:
        match verb["verb"]:
            case "append":
                model.append(as_rows(verb["rows"]), on_duplicate=verb.get("on_duplicate", "allow"))
            case "delete_prefix":
                model.delete_prefix(verb["prefix"])
            case "delete_range":
                model.delete_range(lower=tuple(verb["lower"]), upper=tuple(verb["upper"]))
            case "delete_rows":
                model.delete_rows([dict(zip(KEY, key, strict=True)) for key in verb["keys"]])
            case "delete":
                model.delete(condition_of_row(verb["condition"]))
            case "replace":
                model.replace(as_rows(verb["rows"]), prefix=["g"])
            case "upsert":
                model.upsert(as_rows(verb["rows"]))
            case "overwrite":
                model.overwrite(as_rows(verb["rows"]), where=condition_of_row(verb["condition"]), allow_outside=True)
            case _:
                raise AssertionError(verb)
    return tuple(model.current)


def as_rows(rows: Sequence[Sequence[Any]]) -> list[Row]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]
