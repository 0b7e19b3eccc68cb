"""`DefinedPartitions`: the range partitions of a table, bound to its schema, as disjoint ranges in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tableformat.deletes.spans.spans import SpanArray
from tableformat.keys.key_columns import KeyColumns
from tableformat.range_partitions.cuts import Cut, Range, cuts_before, range_text, spans_of
from tableformat.range_partitions.steps import Duration, Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDemand:
    """RP-9: rows in a missing step create it."""

    limits: Range | None = None
    max_new_per_commit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The settings of a moving window: how many partitions are added ahead, and when a partition is old."""

    retain: Duration | None = None
    ahead: int = 0
    keep_latest: int = 0
    protect: tuple[Range, ...] = ()
    max_drops: int | None = None

    @property
    def is_set(self) -> bool:
        return self.retain is not None or self.ahead > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinedPartitions:
    """RP-2, RP-3: the range partitions of a table. The bounds are sorted, and no two of them overlap or touch. A border
    between touching ones becomes a split."""

    key: KeyColumns
    """The range columns."""
    bounds: tuple[Range, ...]
    splits: tuple[Cut, ...] = ()
    """Borders inside a bound, sorted."""
    steps: Steps | None = None
    on_demand: OnDemand | None = None
    has_default: bool = False
    window: Window = Window()

    @property
    def spans(self) -> SpanArray:
        """The bounds as sorted, disjoint spans."""
        return spans_of(self.key, self.bounds)

    @property
    def takes_every_row(self) -> bool:
        """RP-10: whether every row is accepted."""
        return self.has_default or any(bound.lower.is_open and bound.upper.is_open for bound in self.bounds)

    def bound_of(self, given: Range) -> Range | None:
        """The bound that contains the whole range."""
        return next((bound for bound in self.bounds if bound.holds(given)), None)

    def borders_of(self, bound: Range) -> list[Cut]:
        """RP-3: the cuts that divide the bound into partitions, excluding its own ends."""
        found = {split for split in self.splits if bound.lower < split < bound.upper}
        if self.steps is not None:
            lower, upper = (first_value(cut) for cut in (bound.lower, bound.upper))
            # The upper cut may be after a value that begins a step.
            starts = self.steps.inside(lower - 1, upper + 1).tolist()
            cuts = cuts_before(self.key, starts)
            found |= {cut for cut in cuts if bound.lower < cut < bound.upper}
        return sorted(found)

    def partitions(self) -> Iterator[Range]:
        """RP-3: all partitions, in order."""
        for bound in self.bounds:
            for lower, upper in pairwise((bound.lower, *self.borders_of(bound), bound.upper)):
                yield Range(lower, upper)

    def text(self, given: Range) -> str:
        return range_text(self.key, given)

    def with_ranges(self, bounds: Sequence[Range], splits: Sequence[Cut]) -> DefinedPartitions:
        """The same settings with other ranges, in canonical form."""
        united, borders = unite(bounds)
        cuts = {*splits, *borders}
        inside = sorted(cut for cut in cuts if any(bound.lower < cut < bound.upper for bound in united))
        if self.steps is not None:
            inside = [cut for cut in inside if cut.after or not self.steps.is_border(first_value(cut))]
        return replace(self, bounds=united, splits=tuple(inside))


def first_value(cut: Cut) -> int:
    """The value of a cut of a column with steps, which is a number and never open."""
    value: int = cut.values[0]
    return value


def unite(ranges: Sequence[Range]) -> tuple[tuple[Range, ...], tuple[Cut, ...]]:
    """Disjoint ranges with touching ones joined, and the borders at which they touched."""
    united: list[Range] = []
    borders: list[Cut] = []
    for each in sorted(ranges):
        if united and united[-1].upper == each.lower:
            borders.append(each.lower)
            united[-1] = Range(united[-1].lower, each.upper)
        else:
            united.append(each)
    return tuple(united), tuple(borders)
