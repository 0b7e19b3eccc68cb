"""Draws the picture as SVG without scripts or external fonts and images, with colors for light and dark themes.

A drawing of rectangles and labels does not need a chart library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape

from tableformat.snapshot_layers.bands import BINS, Band, Mark
from tableformat.snapshot_layers.collect import Ruler
from tableformat.snapshot_layers.picture import Picture

_WIDTH: Final = 960
_LEFT: Final = 110
_RIGHT: Final = 20
_LANE: Final = 11
_GAP: Final = 8
_DEPTH: Final = 44
_COLOURS: Final = {
    "data": "#4c8dd6",
    "reached": "#4c8dd6",
    "position": "#9a6fd0",
    "deletion-vector": "#9a6fd0",
    "equality": "#d9902f",
    "range": "#d65f5f",
}
_LEGEND: Final = (
    ("data", False, "data, no delete reaches it"),
    ("data", True, "data, read with deletes"),
    ("range", False, "range delete"),
    ("equality", False, "equality delete"),
    ("position", False, "position delete, vector"),
)
_STANDALONE: Final = (
    "<style>.tf-layers{color:#24292f;background:#fff}@media(prefers-color-scheme:dark)"
    "{.tf-layers{color:#d5dbe1;background:#15191e}}</style>"
)
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML cannot represent."""


def document(picture: Picture) -> str:
    """A standalone file with its own background."""
    return _drawn(picture, _STANDALONE)


def inline(picture: Picture) -> str:
    """For a page: text and lines have the color of the surrounding text."""
    return _drawn(picture, "")


def embedded(picture: Picture) -> str:
    """For a page that forbids inline styles. Its style sheet limits the width of `.tf-layers`."""
    return _drawn(picture, "", limit="")


def escaped(text: str) -> str:
    """Escapes text of a table for the document."""
    return escape(_FORBIDDEN.sub("�", text), {'"': "&quot;"})


def _drawn(picture: Picture, style: str, limit: str = f'style="max-width:{_WIDTH}px" ') -> str:
    parts, height = [], 0
    for part, added in _parts(picture):
        parts.append(f'<g transform="translate(0,{height})">{part}</g>')
        height += added
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tf-layers" viewBox="0 0 {_WIDTH} {height}" width="100%" '
        f'{limit}font-family="system-ui,sans-serif" font-size="11" fill="currentColor" '
        f'role="img"><title>{escaped(picture.title)}</title>{style}<defs>'
        '<pattern id="tf-gap" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect width="2" height="6" fill="currentColor" opacity="0.35"/></pattern>'
        '<pattern id="tf-reached" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<rect width="5" height="5" fill="{_COLOURS["data"]}" opacity="0.3"/>'
        f'<rect width="2" height="5" fill="{_COLOURS["data"]}"/></pattern></defs>{"".join(parts)}</svg>'
    )


def _parts(picture: Picture) -> Iterator[tuple[str, int]]:
    """The parts from top to bottom, each with its height."""
    yield _text(10, 18, picture.title, size=14, weight="600"), 28
    yield _legend(), 22
    for band in picture.bands:
        yield _band(band), band.lane_count * _LANE + _GAP
    if picture.bands:
        yield _depth(picture), _DEPTH + 14
    if picture.collected.ruler is not None:
        yield _ruler(picture.collected.ruler), 22
    yield _ticks(picture), 24
    for line in [picture.reader, *picture.notes] if picture.bands else ["It has no files."]:
        yield _text(10, 12, line), 16
    yield "", 6


def _place(value: float) -> float:
    return round(_LEFT + value * (_WIDTH - _LEFT - _RIGHT), 1)


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 11, weight: str = "400") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}">'
        f"{escaped(text)}</text>"
    )


def _legend() -> str:
    drawn, x = [], 10
    for kind, is_reached, text in _LEGEND:
        drawn.append(_box(kind, is_reached, x, 2, 22))
        drawn.append(_text(x + 28, 11, text))
        x += 44 + 6 * len(text)
    return "".join(drawn)


def _band(band: Band) -> str:
    height = band.lane_count * _LANE
    line = f'<path d="M{_LEFT} {height + 3}H{_WIDTH - _RIGHT}" stroke="currentColor" opacity="0.15"/>'
    marks = "".join(_mark(mark, height) for mark in band.marks)
    return _text(_LEFT - 8, height / 2 + 4, band.label, anchor="end") + line + marks


def _mark(mark: Mark, height: int) -> str:
    left, right = _place(mark.lower), _place(min(mark.upper, 1.0))
    top = height - (mark.lane + 1) * _LANE
    width = max(3.0, round(right - left, 1))
    x = min(left, _WIDTH - _RIGHT - width)
    return _box(mark.kind, mark.is_reached, x, top, width, _opacity(mark), _told(mark))


def _opacity(mark: Mark) -> float:
    return 1.0 if mark.span is not None else min(1.0, 0.35 + 0.1 * mark.file_count)


def _told(mark: Mark) -> str:
    """The tooltip."""
    if mark.span is None:
        return f"{mark.kind}: up to {mark.file_count:,} files"
    return f"{mark.kind} #{mark.span.sequence_number}, {mark.span.record_count:,} records: {mark.span.file_path}"


def _box(kind: str, is_reached: bool, x: float, y: float, width: float, opacity: float = 1.0, told: str = "") -> str:
    """A data file is a filled bar, hatched if deletes reach it. A delete is a thin bar between two ends."""
    height = _LANE - 2
    title = f"<title>{escaped(told)}</title>" if told else ""
    colour = "url(#tf-reached)" if kind == "data" and is_reached else _COLOURS[kind]
    if kind == "data":
        at = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height}"'
        return f'<rect {at} rx="2" fill="{colour}" opacity="{opacity:g}">{title}</rect>'
    middle = y + height / 2
    path = f"M{x:g} {y + 1:g}v{height - 2:g}M{x:g} {middle:g}h{width:g}M{x + width:g} {y + 1:g}v{height - 2:g}"
    return f'<path d="{path}" stroke="{colour}" stroke-width="3" fill="none" opacity="{opacity:g}">{title}</path>'


def _depth(picture: Picture) -> str:
    """The number of opened files at each position. The hatched part of a column is read with deletes."""
    most = max(1, *picture.depth.files)
    width = (_WIDTH - _LEFT - _RIGHT) / BINS
    drawn = [
        _text(_LEFT - 8, 20, "files opened", anchor="end"),
        _text(_LEFT - 8, 34, f"at most {most:,}", anchor="end"),
    ]
    for index, (files, reached) in enumerate(zip(picture.depth.files, picture.depth.reached, strict=True)):
        below = 0.0
        for count, fill in ((files - reached, _COLOURS["data"]), (reached, "url(#tf-reached)")):
            if count:
                height = count / most * (_DEPTH - 6)
                top = _DEPTH - below - height
                drawn.append(
                    f'<rect x="{_LEFT + index * width:.1f}" y="{top:.1f}" width="{width - 1:.1f}" '
                    f'height="{height:.1f}" fill="{fill}"/>'
                )
                below += height
    return "".join(drawn)


def _ruler(ruler: Ruler) -> str:
    """Existing ranges as open bars with a mark at each border; gaps are hatched."""
    drawn = [_text(_LEFT - 8, 12, "partitions", anchor="end")]
    at = 0.0
    for lower, upper in [*ruler.bounds, (1.0, 1.0)]:
        if lower > at:
            told = "default partition" if ruler.has_default else "does not exist"
            at_gap = f'x="{_place(at):g}" y="2" width="{_place(lower) - _place(at):g}" height="12"'
            drawn.append(f'<rect {at_gap} fill="url(#tf-gap)"><title>{told}</title></rect>')
        if upper > lower:
            drawn.append(
                f'<rect x="{_place(lower):g}" y="2" width="{_place(upper) - _place(lower):g}" height="12" '
                'fill="none" stroke="currentColor" opacity="0.7"/>'
            )
        at = max(at, upper)
    borders = sorted({round(_place(border)) for border in ruler.borders})
    if len(borders) <= _WIDTH // 8:
        path = "".join(f"M{border} 2v12" for border in borders)
        drawn.append(f'<path d="{path}" stroke="currentColor" opacity="0.7"/>')
    drawn.append(f"<title>{ruler.partition_count:,} partitions</title>")
    return "".join(drawn)


def _ticks(picture: Picture) -> str:
    drawn: list[str] = []
    free_from = -1.0
    ticks = picture.collected.axis.ticks(6)
    for index, (place, text) in enumerate(ticks):
        x, half = _place(place), 3.2 * len(text)
        anchor = "start" if index == 0 and len(ticks) > 1 else "end" if place >= 0.97 else "middle"
        begin = x if anchor == "start" else x - 2 * half if anchor == "end" else x - half
        drawn.append(f'<path d="M{x:g} 0v4" stroke="currentColor"/>')
        if begin > free_from:
            drawn.append(_text(x, 16, text, anchor=anchor))
            free_from = begin + 2 * half + 8
    return "".join(drawn)
