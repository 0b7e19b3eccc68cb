"""The minutes that a run may take, distributed to its workloads: the time that one leaves unused goes to the next."""

from __future__ import annotations

import time
from collections.abc import Mapping


class Budget:
    """Seconds until a workload has to end."""

    def __init__(self, minutes: float, shares: Mapping[str, float]) -> None:
        self._ends = time.monotonic() + 60 * minutes
        self._shares = dict(shares)

    def deadline(self, workload: str) -> Deadline:
        """The workload's part of the remaining time, by its share among the workloads that have not begun."""
        left = max(self._ends - time.monotonic(), 0)
        part = self._shares[workload] / sum(self._shares.values())
        del self._shares[workload]
        return Deadline(left * part)


class Deadline:
    """A moment, and how far it is."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds, 0 when it is over."""
        return max(self._ends - time.monotonic(), 0)

    @property
    def is_over(self) -> bool:
        return not self.left
