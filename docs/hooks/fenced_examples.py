"""Doctest examples of docstrings as blocks of code: Markdown would take `>>>` for quotations of quotations."""

from __future__ import annotations

from typing import Any

import griffe


class FencedExamples(griffe.Extension):
    """Puts a fence around each run of lines from `>>>` to the next empty line."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    lines: list[str] = []
    is_inside = False
    for line in text.splitlines():
        begins = line.lstrip().startswith(">>>")
        if begins and not is_inside:
            lines += ["", "```pycon"]
        elif is_inside and not line.strip():
            lines.append("```")
        is_inside = begins or (is_inside and bool(line.strip()))
        lines.append(line)
    return "\n".join([*lines, "```"] if is_inside else lines)
