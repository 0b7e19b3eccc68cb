"""Draws the picture with characters, for a terminal."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from tableformat.errors import InvalidArgumentError
from tableformat.snapshot_layers.bands import BINS, KINDS, Band
from tableformat.snapshot_layers.collect import DATA, Ruler
from tableformat.snapshot_layers.picture import Picture

_SIGNS: Final = {DATA: "█", "position": "·", "deletion-vector": "·", "equality": "~", "range": "─"}
_REACHED: Final = "▒"
_NARROWEST: Final = 40
_HEIGHTS: Final = " ▁▂▃▄▅▆▇█"
_LEGEND: Final = (
    "█ data  ▒ data read with deletes  ─ range delete  ~ equality delete  · position delete  / no partition"
)


def lines(picture: Picture, width: int) -> str:
    """The whole text. Raises InvalidArgumentError if the width is too small for the labels."""
    if width < _NARROWEST:
        raise InvalidArgumentError(f"width is {width}: a picture needs {_NARROWEST} characters or more.")
    labels = [f"{band.label} {kind}" for band in picture.bands for kind in _kinds(band)]
    left = max([len("files opened"), *map(len, labels)]) + 1
    room = width - left
    return "\n".join(
        [*_wrapped([picture.title], width), *_lines(picture, left, room), *_wrapped(_said(picture), width)]
    )


def _lines(picture: Picture, left: int, room: int) -> Iterator[str]:
    if not picture.bands:
        return
    for band in picture.bands:
        for kind in reversed(_kinds(band)):
            yield (f"{band.label} {kind}".ljust(left) + _row(band, kind, room)).rstrip()
    yield ("files opened".ljust(left) + _depth(picture.depth.files, room)).rstrip()
    if picture.collected.ruler is not None:
        yield "partitions".ljust(left) + _ruler(picture.collected.ruler, room)
    yield (" " * left + _ticks(picture, room)).rstrip()


def _said(picture: Picture) -> list[str]:
    """The lines below the picture."""
    return [picture.reader, *picture.notes, _LEGEND] if picture.bands else ["It has no files."]


def _wrapped(texts: Iterable[str], width: int) -> list[str]:
    return [line for text in texts for line in textwrap.wrap(plain(text), width)]


def plain(text: str) -> str:
    """Text of a table in one line of a terminal; control characters are replaced."""
    return "".join("�" if unicodedata.category(each) in ("Cc", "Cf", "Cs") else each for each in text)


def _kinds(band: Band) -> list[str]:
    """From the bottom to the top."""
    present = {mark.kind for mark in band.marks}
    return [kind for kind in KINDS if kind in present]


def _row(band: Band, kind: str, room: int) -> str:
    """The positions of the files of a kind. A position is marked if a delete reaches one of its files."""
    cells = [" "] * room
    for is_reached in (False, True):
        for mark in band.marks:
            if mark.kind == kind and mark.is_reached == is_reached:
                first = min(int(mark.lower * room), room - 1)
                last = max(first + 1, min(room, round(mark.upper * room)))
                cells[first:last] = (_REACHED if is_reached else _SIGNS[kind]) * (last - first)
    return "".join(cells)


def _depth(counts: Iterable[int], room: int) -> str:
    files = tuple(counts)
    most = max(1, *files)
    return "".join(_HEIGHTS[-(-files[column * BINS // room] * (len(_HEIGHTS) - 1) // most)] for column in range(room))


def _ruler(ruler: Ruler, room: int) -> str:
    cells = ["/"] * room
    for lower, upper in ruler.bounds:
        first = min(int(lower * room), room - 1)
        cells[first : max(first + 1, round(upper * room))] = "=" * (max(first + 1, round(upper * room)) - first)
    for border in ruler.borders:
        cells[min(int(border * room), room - 1)] = "|"
    return "".join(cells)


def _ticks(picture: Picture, room: int) -> str:
    """Values below their positions, as many as fit."""
    cells = [" "] * room
    free_from = 0
    for place, text in picture.collected.axis.ticks(6):
        shown = plain(text)
        begin = max(0, min(room - len(shown), int(place * room) - (len(shown) // 2 if place else 0)))
        if begin >= free_from and begin + len(shown) <= room:
            cells[begin : begin + len(shown)] = shown
            free_from = begin + len(shown) + 2
    return "".join(cells)
