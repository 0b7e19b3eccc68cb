"""Parts of a page: facts, grids, bars. All given text is escaped.

Colors are inherited from the surrounding page, so that light and dark themes are both legible. A few tints suit either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, NewType

Html = NewType("Html", str)
"""A part that is already escaped. Any other text is not."""
LISTED_ROWS: Final = 20
"""The number of grid rows that are shown. A line states how many rows follow."""
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""Characters that neither HTML nor XML can represent."""
_STYLE: Final = (
    "<style>.tf{font:13px/1.5 system-ui,sans-serif}.tf table{border-collapse:collapse;margin:4px 0 12px}"
    ".tf td,.tf th{padding:2px 14px 2px 0;text-align:left;vertical-align:top;background:none;color:inherit}"
    ".tf th{font-weight:600;border-bottom:1px solid currentColor}.tf .n{text-align:right;white-space:nowrap}"
    ".tf h4{margin:10px 0 2px;font-size:14px}.tf .q{opacity:.65}.tf td.q{white-space:nowrap}"
    ".tf code{background:none;color:inherit}</style>"
)


def escaped(text: object) -> str:
    """Escapes text, including quotes."""
    return escape(_FORBIDDEN.sub("�", str(text)))


def shown(value: object) -> str:
    """A cell: a part of a page unchanged, any other value escaped."""
    return str(value) if isinstance(value, _Part) else escaped(value)


class _Part(str):
    """Marks text as escaped; the functions of this module return it."""

    __slots__ = ()


def part(*texts: str) -> Html:
    """Joins parts."""
    return Html(_Part("".join(texts)))


def fragment(title: str, *parts: str) -> Html:
    """The notebook display of one object."""
    return part(f'{_STYLE}<div class="tf"><h4>{escaped(title)}</h4>', *parts, "</div>")


def unstyled(display: str) -> Html:
    """The display of an object without its style sheet, for a page with a style sheet of its own."""
    return part(display.removeprefix(_STYLE))


def headed(title: str, *parts: str) -> Html:
    """Parts below a heading."""
    return part(f"<h4>{escaped(title)}</h4>", *parts)


def facts(rows: Iterable[tuple[str, object]]) -> Html:
    """Names and values, one pair a line."""
    lines = (f'<tr><td class="q">{escaped(name)}</td><td>{shown(value)}</td></tr>' for name, value in rows)
    return part("<table>", *lines, "</table>")


def grid(columns: Sequence[str], rows: Sequence[Sequence[object]], *, numbers: Iterable[str] = ()) -> Html:
    """A table with a heading. Columns named in `numbers` are aligned right."""
    is_number = [name in set(numbers) for name in columns]
    head = "".join(_cell("th", name, right) for name, right in zip(columns, is_number, strict=True))
    lines = (
        "<tr>" + "".join(_cell("td", value, right) for value, right in zip(row, is_number, strict=True)) + "</tr>"
        for row in rows[:LISTED_ROWS]
    )
    left = len(rows) - LISTED_ROWS
    more = quiet(f"and {left:,} more") if left > 0 else ""
    return part(f"<table><tr>{head}</tr>", *lines, "</table>", more)


def quiet(text: str) -> Html:
    """A remark."""
    return part(f'<div class="q">{escaped(text)}</div>')


def line(text: str) -> Html:
    return part(f"<div>{escaped(text)}</div>")


def code(text: str) -> Html:
    """A command or call to type."""
    return part(f"<code>{escaped(text)}</code>")


def bar(share: float, colour: str) -> Html:
    """A bar of a share from 0 to 1 of its full length. A share above 0 is always visible."""
    width = 0 if share <= 0 else max(3, round(min(share, 1.0) * 240))
    # Attributes instead of a style: pages may forbid inline styles.
    box = f'<rect width="{width}" height="10" rx="2" fill="{escaped(colour)}"/>'
    return part(f'<svg width="{width}" height="10" aria-hidden="true">{box}</svg>')


def page(title: str, *parts: str) -> str:
    """A complete document for both themes."""
    style = (
        "<style>body{margin:24px auto;max-width:1000px;padding:0 16px;color:#24292f;background:#fff}"
        "@media(prefers-color-scheme:dark){body{color:#d5dbe1;background:#15191e}}"
        ".tf h1{font-size:22px}.tf table{display:block;overflow-x:auto}</style>"
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escaped(title)}</title>{_STYLE}{style}'
        f'</head><body class="tf"><h1>{escaped(title)}</h1>{"".join(parts)}</body></html>\n'
    )


def _cell(tag: str, value: object, is_number: bool) -> str:
    return f"<{tag}{' class=n' if is_number else ''}>{shown(value)}</{tag}>"
