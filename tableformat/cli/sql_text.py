"""Splits SQL text into statements, as a person types them: a statement ends with a semicolon."""

from __future__ import annotations

import re
from typing import Final

_PIECE: Final = re.compile(
    r"""
      [eE]'(?:[^'\\]|\\.|'')*'    # text with escapes
    | '(?:[^']|'')*'              # text
    | "(?:[^"]|"")*"              # a name
    | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$
    | --[^\n]*(?:\n|\Z)
    | /\*.*?\*/
    | (?P<end>;)
    | (?P<open>['"]|/\*)          # not closed in this text
    | .
    """,
    re.DOTALL | re.VERBOSE,
)


def split_statements(text: str) -> tuple[list[str], str]:
    """The complete statements of the text, each with its semicolon, and the text after them. Semicolons in text, in
    names in double quotes and in comments end no statement."""
    statements: list[str] = []
    begin = 0
    for piece in _PIECE.finditer(text):
        if piece["open"]:
            break
        if piece["end"]:
            statements.append(text[begin : piece.end()].strip())
            begin = piece.end()
    return statements, text[begin:]


def is_blank(text: str) -> bool:
    """Whether the text has nothing but spaces, comments and semicolons."""
    return all(
        piece[0].isspace() or piece[0].startswith(("--", "/*")) or piece["end"] for piece in _PIECE.finditer(text)
    )
