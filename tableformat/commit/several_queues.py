"""The queues of several tables, as one queue for the commits that change all of them.

    queue of      headers        lines
    writer 1      has the turn   has the turn      commits
    writer 2      waits          -                 a transaction over both tables
    writer 3      -              waits             a commit to lines alone

Queues are taken in the order of their numbers, each after the turn in the previous one has come. So two writers never
wait for each other, in whichever order their transactions name the tables (CP-79).
"""

from __future__ import annotations

from collections.abc import Iterable

from tableformat.commit.commit_queue import Place, WriterQueue


class QueueOfSeveral:
    """A `WriterQueue`."""

    def __init__(self, queues: Iterable[WriterQueue]) -> None:
        # Two tables with the same number share a queue, in which a second position would wait for the first.
        by_number = {queue.number: queue for queue in queues}
        self._queues = [by_number[number] for number in sorted(by_number)]

    @property
    def number(self) -> int:
        """The number of the queue that is taken first."""
        return self._queues[0].number

    def is_busy(self) -> bool:
        """Whether a writer waits in one of them."""
        return any(queue.is_busy() for queue in self._queues)

    def take(self) -> PlacesOfSeveral:
        """Positions that are taken while `wait` waits for them."""
        return PlacesOfSeveral(self._queues)


class PlacesOfSeveral:
    """A `Place` in each queue."""

    def __init__(self, queues: Iterable[WriterQueue]) -> None:
        self._coming = list(queues)
        self._places: list[Place] = []

    def wait(self, patience_seconds: float) -> None:
        """Wait for the turn in all queues, with the patience in each."""
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
