"""The argument `options`: a map of text, parsed by a table of option names for each procedure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tableformat.errors import InvalidArgumentError, UnknownOptionError


@dataclass(frozen=True, slots=True)
class Options:
    """All options that a procedure accepts."""

    procedure: str
    keywords: Mapping[str, tuple[str, Callable[[str], Any]]]
    """Option -> keyword of the library's function, and the parser of its text."""
    hints: frozenset[str] = frozenset()
    """Options that do not affect the result: Iceberg's hints about execution."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Options with a single valid value, which describes how the procedure always behaves."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Option -> why it is not supported."""

    def read(self, options: Mapping[str, str]) -> dict[str, Any]:
        """PR-3: keywords and values. Raises UnknownOptionError, which names the nearest option, and
        InvalidArgumentError for an unsupported option or value."""
        keywords: dict[str, Any] = {}
        for name, text in options.items():
            if name in self.keywords:
                keyword, parse = self.keywords[name]
                keywords[keyword] = self._parsed(name, text, parse)
            elif name in self.refused:
                raise InvalidArgumentError(f"{self.procedure}: option {name!r} is not supported: {self.refused[name]}.")
            elif name in self.fixed:
                if text != self.fixed[name]:
                    raise InvalidArgumentError(
                        f"{self.procedure}: option {name!r} must be {self.fixed[name]!r}, not {text!r}."
                    )
            elif name not in self.hints:
                known = (*self.keywords, *self.hints, *self.fixed)
                raise UnknownOptionError(name, sorted(known), where=self.procedure)
        return keywords

    def _parsed(self, name: str, text: str | None, parse: Callable[[str], Any]) -> Any:
        try:
            return parse(text or "")
        except ValueError as error:
            kind = {int: "a whole number", float: "a number"}.get(parse, "true or false")  # type: ignore[call-overload]
            raise InvalidArgumentError(f"{self.procedure}: option {name!r} must be {kind}, not {text!r}.") from error


def boolean(text: str) -> bool:
    """Raises ValueError for any text except true and false."""
    values = {"true": True, "false": False}
    if text.lower() not in values:
        raise ValueError(text)
    return values[text.lower()]
