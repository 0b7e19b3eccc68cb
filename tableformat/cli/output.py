"""Output of commands: one document or one rendering on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_SPOOLED_BYTES = 16_000_000
"""Rows in JSON up to this size stay in memory until they are printed."""
_UNWRAPPED_WIDTH = 10_000
"""Line width of output to a file or a pipe: lines stay whole for grep and awk."""


class OutputFormat(StrEnum):
    """The format of stdout."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    NDJSON = "ndjson"

    @property
    def has_only_rows(self) -> bool:
        """Whether the format is for commands that print rows."""
        return self not in (OutputFormat.TEXT, OutputFormat.JSON)


@dataclass(frozen=True, slots=True)
class Output:
    """The streams of one command."""

    format: OutputFormat

    @property
    def is_json(self) -> bool:
        return self.format is OutputFormat.JSON

    @property
    def is_text(self) -> bool:
        return self.format is OutputFormat.TEXT

    def emit(self, document: Callable[[], dict[str, Any]], rendering: Callable[[], RenderableType]) -> None:
        """Print the result as a JSON document or as text. Only the requested form is computed."""
        if self.is_json:
            self.write(json.dumps(document(), indent=2, default=str, ensure_ascii=False, allow_nan=False) + "\n")
        else:
            self._render(rendering())

    def _render(self, rendering: RenderableType) -> None:
        # Lines that do not wrap may be longer than the screen, but nothing is cut off.
        at = console(sys.stdout)
        if at.is_terminal:
            at.print(rendering, crop=False)
            return
        with at.capture() as captured:
            at.print(rendering, crop=False)
        # The padding of the last column is only useful on screens.
        self.write(*(f"{line.rstrip()}\n" for line in captured.get().splitlines()))

    def write(self, *parts: str) -> None:
        """Print text to stdout unchanged."""
        sys.stdout.writelines(parts)

    def flush(self) -> None:
        """Flush the output if more follows later. Otherwise a file or a pipe would get it late."""
        sys.stdout.flush()

    def note(self, *lines: str) -> None:
        """Write a note to stderr."""
        sys.stderr.writelines(f"{line}\n" for line in lines)

    def error(self, error: BaseException, message: str) -> None:
        """Report the error on stderr, as a JSON object if the output is JSON."""
        if self.is_json:
            document = {"error": {"type": type(error).__name__, "message": message}}
            self.note(json.dumps(document, ensure_ascii=False))
            return
        from rich.text import Text

        console(sys.stderr).print(Text.assemble(("Error: ", "bold red"), message), soft_wrap=True)

    def progress_console(self) -> Console | None:
        """The console for progress bars; None if stderr is not a terminal."""
        at = console(sys.stderr)
        return at if at.is_terminal else None

    def write_rows(
        self,
        columns: Iterable[dict[str, str]],
        batches: Iterable[list[dict[str, Any]]],
        after: Callable[[], dict[str, Any]],
    ) -> None:
        """Print one JSON document: `columns`, `rows`, and the fields that `after` returns at the end.

        It is kept in a temporary file until it is complete. A failure prints no partial document, and memory does not
        grow with the rows.
        """
        with tempfile.SpooledTemporaryFile(max_size=_SPOOLED_BYTES, mode="w+", encoding="utf-8") as document:
            document.writelines(('{\n"columns": ', json.dumps(list(columns), ensure_ascii=False), ',\n"rows": ['))
            separator = "\n"
            for batch in batches:
                for row in batch:
                    document.writelines((separator, json.dumps(row, ensure_ascii=False, allow_nan=False)))
                    separator = ",\n"
            document.write("\n]")
            for name, value in after().items():
                document.write(f",\n{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}")
            document.write("\n}\n")
            document.seek(0)
            shutil.copyfileobj(document, sys.stdout)


def console(stream: TextIO) -> Console:
    """A rich console that wraps lines only on a terminal, or if COLUMNS is set. It ignores markup, because names and
    values of users may contain brackets."""
    from rich.console import Console

    has_width = stream.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(
        file=stream, markup=False, emoji=False, highlight=False, width=None if has_width else _UNWRAPPED_WIDTH
    )
