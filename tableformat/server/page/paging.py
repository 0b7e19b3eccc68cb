"""Long lists in pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")

PAGE_ITEMS: Final = 50


@dataclass(frozen=True, slots=True)
class Listed(Generic[Item]):
    """One page of a list."""

    items: Sequence[Item]
    number: int
    """From 1 on."""
    item_count: int
    """Of all pages."""

    @property
    def first(self) -> int:
        """The position of the first item of the page, from 1 on."""
        return (self.number - 1) * PAGE_ITEMS + 1

    @property
    def last(self) -> int:
        return self.first + len(self.items) - 1

    @property
    def has_next(self) -> bool:
        return self.last < self.item_count and bool(self.items)


def listed(items: Sequence[Item], number: int) -> Listed[Item]:
    """The page with the number, from 1 on. A page after the last one has no items."""
    begin = (number - 1) * PAGE_ITEMS
    return Listed(items[begin : begin + PAGE_ITEMS], number, len(items))
