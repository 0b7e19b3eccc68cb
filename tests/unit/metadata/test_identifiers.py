"""Table identifiers as text and as parts."""

from __future__ import annotations

import pytest

from tableformat.metadata.identifiers import identifier_parts, identifier_text

PAIRS = {
    "db.t": ("db", "t"),
    "a.b.t": ("a", "b", "t"),
    'db."a.b"': ("db", "a.b"),
    '"x.y".t': ("x.y", "t"),
    'db."a""b.c"': ("db", 'a"b.c'),
    'db."""q"""': ("db", '"q"'),
    'db.it"s': ("db", 'it"s'),
    "db.": ("db", ""),
}


@pytest.mark.parametrize("text", PAIRS)
def test_identifier_text_round_trips(text: str) -> None:
    """LK-1"""
    assert identifier_parts(text) == PAIRS[text]
    assert identifier_text(PAIRS[text]) == text
    assert identifier_parts(PAIRS[text]) == PAIRS[text]


def test_unclosed_quote_is_a_literal_character() -> None:
    """LK-1: such names were possible before they were quoted."""
    assert identifier_parts('db."a') == ("db", '"a')
    assert identifier_parts('db."a"b') == ("db", '"a"b')
