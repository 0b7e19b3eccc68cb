"""Parses the text of a statement by DuckDB's tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = re.compile(r'"(?:[^"]|"")*"|[\w$]+|\S')
"""Matches a whole name or word; for anything else, the first character is enough."""
QUERY_WORDS: Final = ("SELECT", "FROM", "WITH", "VALUES", "TABLE", "(")
"""First words of a query."""


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    start: int

    @property
    def word(self) -> str:
        return self.text.upper()


class StatementReader:
    """Reads the tokens of a statement in order."""

    def __init__(self, sql: str) -> None:
        import duckdb

        self._sql = sql
        # DuckDB 1.5 omits comments, 2.0 does not. Neither returns the end of a token.
        starts = [start for start, kind in duckdb.tokenize(sql) if kind != duckdb.token_type.comment]
        self._tokens = [Token(found[0], start) for start in starts if (found := _TOKEN.match(sql, start))]

    def took(self, *words: str) -> bool:
        """Whether the next tokens are these words. If so, they are consumed."""
        if [token.word for token in self._tokens[: len(words)]] != list(words):
            return False
        del self._tokens[: len(words)]
        return True

    def next(self) -> str:
        return self._tokens[0].word if self._tokens else ""

    def after_next(self) -> str:
        return self._tokens[1].word if len(self._tokens) > 1 else ""

    def is_name(self) -> bool:
        """Whether a name comes next, not a symbol or the end."""
        return bool(re.match(r'["\w]', self.next()))

    def identifier(self) -> str:
        text = self._tokens.pop(0).text
        return text[1:-1].replace('""', '"') if text.startswith('"') else text

    def path(self) -> tuple[str, ...]:
        """Read a dotted name, such as `a.b.c`."""
        names = [self.identifier()]
        while self.took("."):
            names.append(self.identifier())
        return tuple(names)

    def rest(self) -> str:
        """The remaining text, without the semicolon at its end."""
        return self._sql[self._tokens[0].start :].rstrip().rstrip(";") if self._tokens else ""

    def queries(self) -> Iterator[int]:
        """Positions in the text where a query may begin."""
        return (token.start for token in self._tokens if token.word in QUERY_WORDS)
