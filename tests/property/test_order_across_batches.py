"""Batches in any order, some repeated, concurrently with jobs and other writers: the newest row of each key stays."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from example_counts import examples
from fast_lake import fast_lake
from hypothesis import given, settings
from hypothesis import strategies as st

import tableformat as tf
from tableformat.errors import CommitConflictError

COLUMNS = pa.schema(
    [
        pa.field("customer", pa.string(), nullable=False),
        pa.field("order", pa.int64(), nullable=False),
        ("note", pa.string()),
        ("ts", pa.int64()),
    ]
)
CUSTOMERS = ["ann", "bob", "cid"]


@dataclass(frozen=True)
class Event:
    """An event of one key, or a message of one customer. Without notes it is a delete."""

    customer: str
    order: int | None
    ts: int | None
    notes: tuple[str, ...]

    @property
    def rank(self) -> int:
        return -1 if self.ts is None else self.ts


@dataclass
class Newest:
    """The expected rows."""

    events: dict[tuple[str, int | None], Event] = field(default_factory=dict)

    def take(self, event: Event) -> bool:
        known = self.events.get((event.customer, event.order))
        if known is not None and event.rank < known.rank:
            return False
        self.events[event.customer, event.order] = event
        return True

    def rows(self) -> list[tuple[str, int, str, int | None]]:
        found = []
        for event in self.events.values():
            numbered = enumerate(event.notes) if event.order is None else ((event.order, note) for note in event.notes)
            found += [(event.customer, number, note, event.ts) for number, note in numbered]
        return sorted(found)


def new_table(catalog: tf.Catalog, version: int, **properties: str) -> tf.Table:
    properties = {"format-version": str(version), "tableformat.order-column": "ts", **properties}
    return catalog.create_table("db.orders", COLUMNS, key=["customer", "order"], properties=properties)


def rows_in(table: tf.Table) -> list[tuple[str, int, str, int | None]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())  # type: ignore[misc]


def event_of_key(customer: str, order: int, ts: int | None, *, deletes: bool) -> Event:
    """An event whose content depends only on its time, as in a stream that repeats events."""
    return Event(customer, order, ts, () if deletes else (f"at {ts}",))


def message(customer: str, ts: int | None) -> Event:
    return Event(customer, None, ts, tuple(f"{ts}-{line}" for line in range((0 if ts is None else ts * 7) % 3)))


times = st.none() | st.integers(0, 30)
events_of_keys = st.builds(
    lambda customer, order, ts: event_of_key(customer, order, ts, deletes=ts is not None and (ts + order) % 4 == 0),
    st.sampled_from(CUSTOMERS),
    st.integers(0, 4),
    times,
)
messages = st.builds(message, st.sampled_from(CUSTOMERS), times)
jobs = st.sampled_from(["convert", "compact", "reload"])


def batches_of(events: st.SearchStrategy[Event]) -> st.SearchStrategy[list[list[Event] | str]]:
    batch = st.lists(events, min_size=1, max_size=6, unique_by=lambda event: (event.customer, event.order))
    return st.lists(batch | jobs, min_size=2, max_size=9)


def run_job(catalog: tf.Catalog, table: tf.Table, job: str) -> tf.Table:
    if job == "convert":
        table.maintenance.convert_deletes()
    elif job == "compact":
        table.maintenance.compact(rewrite_all=True)
    else:
        table = catalog.load_table("db.orders")
    return table


def changes(batch: list[Event]) -> pa.Table:
    rows = [
        {"customer": each.customer, "order": each.order, "note": note, "ts": each.ts, "op": op}
        for each in batch
        for op, note in (("delete", None),) * (not each.notes) or (("update", each.notes[0]),)
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema([*COLUMNS, ("op", pa.string())]))


def message_rows(batch: list[Event]) -> pa.Table:
    optional = pa.schema([each.with_nullable(True) for each in COLUMNS])
    rows = []
    for each in batch:
        lines = list(enumerate(each.notes)) or [(None, None)]
        rows += [{"customer": each.customer, "order": line, "note": note, "ts": each.ts} for line, note in lines]
    return pa.Table.from_pylist(rows, schema=optional)


@pytest.mark.parametrize("version", [2, 3])
@settings(max_examples=examples(0.15))
@given(batches=batches_of(events_of_keys), in_transactions=st.booleans())
def test_change_events_in_any_order_keep_newest_row_per_key(
    version: int, batches: list[list[Event] | str], in_transactions: bool
) -> None:
    with fast_lake() as catalog:
        table, newest = new_table(catalog, version), Newest()
        for batch in batches:
            if isinstance(batch, str):
                table = run_job(catalog, table, batch)
                continue
            fresh = [newest.take(event) for event in batch]
            if in_transactions:
                with table.transaction() as tx:
                    for event in batch:
                        tx.apply_changes(changes([event]), op="op", order_by="ts")
                result = tx.result
            elif all(event.notes for event in batch):
                result = table.upsert(changes(batch).drop_columns(["op"]))
            else:
                result = table.apply_changes(changes(batch), op="op", order_by="ts")
            assert result.stale_row_count == fresh.count(False)
            assert rows_in(table) == newest.rows()


@pytest.mark.parametrize("version", [2, 3])
@settings(max_examples=examples(0.15))
@given(batches=batches_of(messages), is_staged=st.booleans(), draws=st.randoms(use_true_random=False))
def test_messages_in_any_order_keep_newest_message_per_prefix(
    version: int, batches: list[list[Event] | str], is_staged: bool, draws: random.Random
) -> None:
    with fast_lake() as catalog:
        table, newest = new_table(catalog, version), Newest()
        for batch in batches:
            if isinstance(batch, str):
                table = run_job(catalog, table, batch)
                continue
            stale = [event for event in batch if not newest.take(event)]
            if is_staged:
                write = table.new_write(kind="replace", prefix=["customer"])
                cut = draws.randint(0, len(batch))
                result = table.commit(write, [write.write(message_rows(each)) for each in (batch[:cut], batch[cut:])])
            else:
                result = table.replace(message_rows(batch), prefix=["customer"])
            assert result.stale_row_count == sum(max(len(event.notes), 1) for event in stale)
            assert rows_in(table) == newest.rows()


@pytest.mark.parametrize(("version", "by_message"), [(2, False), (3, True)])
def test_concurrent_writers_keep_newest_row_per_key(version: int, by_message: bool) -> None:
    draws = random.Random(version)
    if by_message:
        events = [message(customer, ts) for customer in CUSTOMERS for ts in range(12)]
    else:
        events = [
            event_of_key(customer, order, ts, deletes=ts % 3 == 0)
            for customer in CUSTOMERS
            for order in range(2)
            for ts in range(6)
        ]
    newest = Newest()
    for event in events:
        newest.take(event)
    draws.shuffle(events)

    def write(shares: list[Event]) -> None:
        own = catalog.load_table("db.orders")
        for event in shares:
            for _ in range(20):
                with suppress(CommitConflictError):
                    if by_message:
                        own.replace(message_rows([event]), prefix=["customer"])
                    else:
                        own.apply_changes(changes([event]), op="op", order_by="ts")
                    break
            else:
                raise AssertionError("the writer was never let through")

    with fast_lake() as catalog:
        table = new_table(catalog, version)
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(write, [events[:12], events[12:24], events[24:], events[::3]]))
        assert rows_in(table.refresh()) == newest.rows()
