"""The queues of several tables, as one queue for the commits that change all of them.

    queue of      headers        lines
    writer 1      has the turn   has the turn      commits
    writer 2      waits          -                 a transaction over both tables
    writer 3      -              waits             a commit to lines alone

Queues are taken one after the other, in the order of their numbers, each after its turn has come. Then no two
writers wait for each other, for any order in which their transactions name the tables (CP-79).
"""

from __future__ import annotations

from collections.abc import Iterable

from tableformat.commit.commit_queue import Place, WriterQueue


class QueueOfSeveral:
    """A `WriterQueue`."""

    def __init__(self, queues: Iterable[WriterQueue]) -> None:
        # Two tables that share a number share a queue, where a second place would wait for the first.
        by_number = {queue.number: queue for queue in queues}
        self._queues = [by_number[number] for number in sorted(by_number)]

    @property
    def number(self) -> int:
        """Of the queue that is taken first."""
        return self._queues[0].number

    def is_busy(self) -> bool:
        """Whether a writer waits in one of them."""
        return any(queue.is_busy() for queue in self._queues)

    def take(self) -> PlacesOfSeveral:
        """Places that are taken while `wait` waits for them."""
        return PlacesOfSeveral(self._queues)


class PlacesOfSeveral:
    """A `Place` in each queue."""

    def __init__(self, queues: Iterable[WriterQueue]) -> None:
        self._coming = list(queues)
        self._places: list[Place] = []

    def wait(self, patience_seconds: float) -> None:
        """Until it is the turn in all queues, with the patience in each."""
        for place in self._places:
            place.wait(patience_seconds)
        while self._coming:
            self._places.append(self._coming[0].take())
            del self._coming[0]
            self._places[-1].wait(patience_seconds)

    def give_back(self) -> None:
        """Leave all queues."""
        while self._places:
            self._places.pop().give_back()
