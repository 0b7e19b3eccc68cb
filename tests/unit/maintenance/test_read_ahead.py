"""A source that is read in its own thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tableformat.maintenance.compaction.read_ahead import ReadAhead


def test_items_come_in_order() -> None:
    with ReadAhead(iter(range(100)), depth=2) as items:
        assert list(items) == list(range(100))


def test_source_error_is_raised_in_item_order() -> None:
    def source() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    with ReadAhead(source(), depth=1) as items:
        assert next(items) == 1
        with pytest.raises(ValueError, match="broken"):
            next(items)


def test_source_and_thread_end_when_the_consumer_stops_early() -> None:
    closed = threading.Event()

    def source() -> Iterator[int]:
        try:
            yield from range(1_000_000)
        finally:
            closed.set()

    def consume_one() -> None:
        with ReadAhead(source(), depth=1) as items:
            next(items)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        consume_one()
    assert closed.is_set()
    assert "read-ahead" not in {thread.name for thread in threading.enumerate()}
