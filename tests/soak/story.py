"""The first use of the library as one run: two streams replace the lines of messages in one table.

Files stand for the topic. Each stream reads the files of its own customers, because a key of a topic is in one
partition. Files hold several messages of one order, in any order, and messages without lines. In the meantime the
streams are ended and restarted, maintenance jobs run, and a consumer follows the change feed.

The expected rows come from a model that applies the messages one by one. A snapshot may have the messages of any number
of files, but only of whole files, and never of fewer files than an earlier snapshot.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa
from soak_figures import count

import tableformat as tf
from tableformat.errors import CommitConflictError
from tableformat.metadata.change_columns import CHANGE_TYPE

SCHEMA: Final = pa.schema(
    [("customer", pa.string()), ("order", pa.int64()), ("line", pa.int32()), ("item", pa.string())]
)
KEY: Final = ("customer", "order", "line")
CUSTOMERS: Final = (("ann", "bob"), ("cem", "dan"))
"""The customers of each stream."""
NEVER_WRITTEN: Final = ("eve", 1, 1, "kept")
"""A row that no message replaces."""
ORDERS: Final = 6
MART: Final = "mart"
EXPIRED_AFTER: Final = timedelta(seconds=10)
"""Longer than a check of the current rows takes, because no consumer protects what it reads."""
LAYOUTS: Final[tuple[tuple[list[str], dict[str, str]], ...]] = (
    ([], {"format-version": "2"}),
    (["customer"], {"format-version": "3", "tableformat.upkeep": "writer"}),
    (["bucket(2, customer)"], {"format-version": "2", "commit.manifest.min-count-to-merge": "3"}),
    ([], {"format-version": "3", "write.target-file-size-bytes": "2000", "tableformat.upkeep": "writer"}),
)
_FIRST_FILE_SECONDS: Final = 1_700_000_000

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = Counter[Row]


@dataclass
class Topic:
    """The messages of one stream, as files, and the rows after each file."""

    directory: Path
    customers: Sequence[str]
    draw: random.Random
    states: list[Rows] = field(default_factory=lambda: [Counter()])
    """The rows after so many files."""
    _lines: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    _offset: int = 0

    def write_file(self) -> None:
        """Spark takes files by their time; a hidden name keeps it from an incomplete one."""
        number = len(self.states)
        messages = [self._message(number) for _ in range(self.draw.randint(1, 10))]
        self.draw.shuffle(messages)
        written = self.directory / f".{number:06}.json"
        written.write_text("".join(json.dumps(message) + "\n" for message in messages))
        os.utime(written, (_FIRST_FILE_SECONDS + number, _FIRST_FILE_SECONDS + number))
        self.states.append(Counter(self._rows()))
        written.rename(self.directory / f"{number:06}.json")
        count("messages", len(messages))

    def _message(self, number: int) -> dict[str, Any]:
        self._offset += 1
        customer, order = self.draw.choice(self.customers), self.draw.randrange(ORDERS)
        lines = [f"{self._offset}.{line}" for line in range(self.draw.choice((0, 0, 1, 2, 5)))]
        self._lines[customer, order] = lines
        empty = self.draw.choice(([], None))
        items = lines or empty
        return {"at": number // 3, "offset": self._offset, "customer": customer, "order": order, "items": items}

    def _rows(self) -> Iterator[Row]:
        for (customer, order), lines in self._lines.items():
            yield from ((customer, order, line, item) for line, item in enumerate(lines, start=1))


class Progress:
    """How many files of each topic a reader has seen in the table."""

    def __init__(self, topics: Sequence[Topic]) -> None:
        self.topics = topics
        self.files = [0] * len(topics)

    def check(self, rows: Rows, at_least: Sequence[int] | None = None) -> None:
        """Raises AssertionError if no number of files gives the rows, or if there are fewer files than before."""
        rest = +rows
        for number, topic in enumerate(self.topics):
            found = Counter({row: times for row, times in rows.items() if row[0] in topic.customers})
            first = max(self.files[number], at_least[number] if at_least else 0)
            states = topic.states
            matching = next((at for at in range(first, len(states)) if states[at] == found), None)
            if matching is None:
                nearest = min(states[first:] or states[-1:], key=lambda state: _difference(state, found).total())
                raise AssertionError(
                    f"stream {number}: no state after {first} to {len(states) - 1} files has these rows; the nearest "
                    f"one lacks {found - nearest} and also has {nearest - found}"
                )
            self.files[number] = matching
            rest -= found
        assert rest == Counter([NEVER_WRITTEN]), f"rows without a message: {rest}"


def _difference(one: Rows, other: Rows) -> Rows:
    return (one - other) + (other - one)


def rows_of(table: tf.Table, snapshot_id: int | None = None) -> Rows:
    return counted(table.scan(snapshot_id=snapshot_id).to_arrow())


def counted(rows: pa.Table) -> Rows:
    return Counter(zip(*(rows[name].to_pylist() for name in SCHEMA.names), strict=True))


class Mart:
    """A consumer of the change feed, with a copy of the table."""

    def __init__(self, catalog: tf.Catalog, name: str, topics: Sequence[Topic], draw: random.Random) -> None:
        self._table = catalog.load_table(name)
        self._table.consumers.advance(MART)
        self._rows = rows_of(self._table)
        self._progress = Progress(topics)
        self._draw = draw

    def step(self) -> None:
        """Read what is new. Sometimes the consumer dies before it has stored anything."""
        table = self._table.refresh()
        feed = table.changes(consumer=MART)
        events = feed.to_arrow()
        is_insert = pa.compute.equal(events[CHANGE_TYPE.name], "insert")
        rows = self._rows.copy()
        rows.update(counted(events.filter(is_insert)))
        rows.subtract(counted(events.filter(pa.compute.invert(is_insert))))
        assert min(rows.values()) >= 0, f"the feed deletes a row that was not there: {-rows}"
        rows = +rows
        there = rows_of(table, feed.to_snapshot_id)
        assert rows == there, f"the copy lacks {there - rows} and also has {rows - there}"
        self._progress.check(rows)
        count("reads of the change feed")
        if self._draw.random() < 0.8:
            self._rows = rows
            table.consumers.advance(MART, feed.to_snapshot_id)


class Keeper:
    """Jobs of maintenance in a random order."""

    def __init__(self, catalog: tf.Catalog, name: str, draw: random.Random) -> None:
        self._table = catalog.load_table(name)
        self._draw = draw

    def step(self) -> None:
        maintenance = self._table.refresh().maintenance
        jobs: tuple[Callable[[], object], ...] = (
            maintenance.convert_deletes,
            maintenance.compact,
            lambda: maintenance.compact(rewrite_all=True),
            maintenance.merge_range_deletes,
            maintenance.rewrite_position_delete_files,
            maintenance.rewrite_manifests,
            lambda: maintenance.expire_snapshots(older_than=EXPIRED_AFTER, retain_last=1),
            maintenance.drop_dead_deletes,
        )
        try:
            self._draw.choice(jobs)()
            count("jobs")
        except CommitConflictError:
            count("jobs with a conflict")


class Stream(Protocol):
    """A streaming query that reads one topic."""

    def start(self) -> None: ...

    @property
    def has_begun(self) -> bool:
        """Whether it has written since it was started. AssertionError if it has failed."""

    def end_at_random(self) -> None:
        """End the query as a failure would, wherever it is."""

    def finish(self) -> None:
        """Run until every file is read."""

    def abandon(self) -> None:
        """End what still runs after a failed test."""

    @property
    def committed_batches(self) -> int: ...


class Story:
    """A table with its topics, its consumer and its jobs."""

    def __init__(self, catalog: tf.Catalog, name: str, directory: Path, seed: int) -> None:
        self.draw = random.Random(seed)
        self.catalog, self.name = catalog, name
        self.layout = self.draw.choice(LAYOUTS)
        partition_by, properties = self.layout
        table = catalog.create_table(name, SCHEMA, key=list(KEY), partition_by=partition_by, properties=properties)
        table.append(pa.Table.from_pylist([dict(zip(SCHEMA.names, NEVER_WRITTEN, strict=True))], schema=SCHEMA))
        self.topics = [
            Topic(directory / f"topic-{number}", customers, random.Random(self.draw.random()))
            for number, customers in enumerate(CUSTOMERS)
        ]
        for topic in self.topics:
            topic.directory.mkdir(parents=True)
            topic.write_file()
        self._progress = Progress(self.topics)
        self._mart = Mart(catalog, name, self.topics, random.Random(self.draw.random()))
        self._keeper = Keeper(catalog, name, random.Random(self.draw.random()))

    def run(self, streams: Sequence[Stream], seconds: float, seconds_between: tuple[float, float]) -> None:
        """Write files until the time is over; a random stream is ended every `seconds_between`."""
        try:
            self._run(streams, seconds, seconds_between)
        finally:
            for stream in streams:
                stream.abandon()
        self._check_end()

    def _run(self, streams: Sequence[Stream], seconds: float, seconds_between: tuple[float, float]) -> None:
        with at_work(self._mart.step, self._keeper.step) as check_workers:
            for stream in streams:
                stream.start()
            ends = time.monotonic() + seconds
            restart_at = time.monotonic() + self.draw.uniform(*seconds_between)
            while time.monotonic() < ends:
                check_workers()
                self.draw.choice(self.topics).write_file()
                time.sleep(self.draw.uniform(0, 0.3))
                running = [stream for stream in streams if stream.has_begun]
                if running and time.monotonic() >= restart_at:
                    self._restart(self.draw.choice(running), streams)
                    restart_at = time.monotonic() + self.draw.uniform(*seconds_between)
            for stream in streams:
                stream.end_at_random()
                stream.finish()

    def _restart(self, stream: Stream, streams: Sequence[Stream]) -> None:
        stream.end_at_random()
        count("ends of a stream")
        self.check(streams)
        stream.start()

    def check(self, streams: Sequence[Stream]) -> None:
        """The table has all files that a stream has noted as done, and perhaps more."""
        at_least = [stream.committed_batches for stream in streams]
        self._progress.check(rows_of(self.catalog.load_table(self.name)), at_least)

    def _check_end(self) -> None:
        self._mart.step()
        table = self.catalog.load_table(self.name)
        expected, found = self.last_rows(), rows_of(table)
        assert found == expected, f"lost: {expected - found}, too many: {found - expected}"
        assert table.maintenance.verify().is_clean
        count("rounds of the story")

    def last_rows(self) -> Rows:
        """The rows after every message."""
        return sum((topic.states[-1] for topic in self.topics), Counter([NEVER_WRITTEN]))


@contextmanager
def at_work(*steps: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Repeat each step in a separate thread. The function in the context raises the error of a step."""
    is_over = threading.Event()

    def repeat(step: Callable[[], None]) -> None:
        while not is_over.wait(0.1):
            step()

    with ThreadPoolExecutor(len(steps)) as pool:
        working: list[Future[None]] = [pool.submit(repeat, step) for step in steps]

        def check() -> None:
            for each in working:
                if each.done():
                    each.result()

        try:
            yield check
        finally:
            is_over.set()
    check()
