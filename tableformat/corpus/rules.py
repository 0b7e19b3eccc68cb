"""The rules of the specification as sentences, by id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tableformat.corpus.specification import RULE_DOCUMENTS

_RULE: Final = re.compile(r"(?m)^### ([A-Z]{2}-\d+) (.+)\n\n((?:.+\n)+?(?:(?<=:\n)\n(?:.+\n)+|(?=\n|\Z)))")
"""A heading, and the lines up to the first empty one, plus a list that the paragraph announces."""
ICEBERG_RULES: Final = tuple(f"DA-{number}" for number in range(1, 11))
"""Rules that restate the Apache Iceberg specification; all others are this format's own."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the specification."""

    id: str
    title: str
    """The heading: the rule in a sentence."""
    text: str
    """Its first paragraph, with the list that it announces."""
    document: str
    """The file name of the document."""

    def to_dict(self) -> dict[str, str]:
        return {"id": self.id, "title": self.title, "text": self.text, "document": self.document}


def read_rules(directory: Path) -> Mapping[str, Rule]:
    """Every rule of the documents in the directory of the specification."""
    return {
        rule.id: rule
        for name in RULE_DOCUMENTS
        for rule in _rules_of((directory / name).read_text(encoding="utf-8"), name)
    }


def _rules_of(text: str, document: str) -> list[Rule]:
    return [
        Rule(rule_id, title.strip(), " ".join(_unlinked(paragraph).split()), document)
        for rule_id, title, paragraph in _RULE.findall(text)
    ]


def _unlinked(text: str) -> str:
    """Replace Markdown links by their text, because cases are read far from the documents."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
