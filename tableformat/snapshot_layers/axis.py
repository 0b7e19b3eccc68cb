"""The axis of the picture: maps the values of one column to positions between 0 and 1."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
)

from tableformat.metadata.partition_text import human_text

_MEASURED: Final = (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
)
"""Types whose values have distances. For other types only the order is drawn."""
LABEL_CHARACTERS: Final = 24


def is_finite(value: Any) -> bool:
    """Whether a value has a position. Infinite values are drawn at the edge."""
    return not isinstance(value, float) or math.isfinite(value)


@dataclass(frozen=True, slots=True)
class Axis:
    """A column and the positions of its values."""

    column: str
    value_type: PrimitiveType
    to_scale: bool
    """Whether distances are proportional. Otherwise the values that occur have equal distances."""
    values: tuple[Any, ...]
    """The sorted end values, in Iceberg's internal representation."""

    @classmethod
    def of(cls, column: str, value_type: PrimitiveType, values: Iterable[Any], *, to_scale: bool) -> Axis:
        """An axis over the values. `to_scale` requests proportional distances, if the type has them."""
        is_measured = isinstance(value_type, _MEASURED)
        distinct = sorted({value for value in values if value is not None and is_finite(value)})
        return cls(column, value_type, to_scale and is_measured, tuple(distinct))

    def place(self, value: Any) -> float:
        """The position of a value, from 0 for the lowest to 1 for the highest; 0.5 for a single value."""
        if len(self.values) < 2:
            return 0.5
        if self.to_scale and is_finite(value):
            # Exact arithmetic: as floats, different values may be equal, and distances of large ones infinite.
            lowest, highest = Fraction(self.values[0]), Fraction(self.values[-1])
            return min(1.0, max(0.0, float((Fraction(value) - lowest) / (highest - lowest))))
        return min(bisect_left(self.values, value), len(self.values) - 1) / (len(self.values) - 1)

    def ticks(self, count: int) -> list[tuple[float, str]]:
        """Positions and texts of at most this many values, including the lowest and the highest."""
        if not self.values:
            return []
        chosen: dict[int, None] = {}
        for step in range(count):
            wanted = step / max(1, count - 1)
            nearest = min(range(len(self.values)), key=lambda index: abs(self.place(self.values[index]) - wanted))
            chosen[nearest] = None
        return [(self.place(self.values[index]), self.text(self.values[index])) for index in chosen]

    def text(self, value: Any) -> str:
        """A value as readable text, truncated if it is long."""
        whole = human_text(IdentityTransform(), self.value_type, value)
        return whole if len(whole) <= LABEL_CHARACTERS else f"{whole[: LABEL_CHARACTERS - 1]}…"
