"""The matrix: one row for each case and one column for each reader. Each wrong or crashed cell has a command that
reproduces it."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tableformat.corpus.answers import CaseResult, Verdict
from tableformat.corpus.check import OF_THIS_ENVIRONMENT, ReaderResult
from tableformat.corpus.write import ICEBERG, RANGE_DELETES, WrittenCase

if TYPE_CHECKING:
    from rich.console import Group

_MARKS: Final = {
    Verdict.RIGHT: "right",
    Verdict.REFUSED: "refused",
    Verdict.WRONG: "**wrong**",
    Verdict.CRASHED: "**crashed**",
}
_STYLES: Final = {
    Verdict.RIGHT: "green",
    Verdict.REFUSED: "yellow",
    Verdict.WRONG: "bold red",
    Verdict.CRASHED: "bold red",
}
_MESSAGE_CHARACTERS: Final = 120
_HEAD: Final = (
    "# What readers make of the corpus",
    "",
    "Printed by `tableformat corpus check --markdown`, here by `make corpus`. **right**: the rows that the rules give,",
    "or an error where the table must be refused. **refused**: an error, although the table can be read; it loses no",
    "row. **wrong**: other rows, without an error. **crashed**: the process ended or hung. Range deletes are of this",
    "format: others are right to refuse them. Each wrong or crashed cell is below with the command that shows it.",
    "",
)
_PARTS: Final = {
    ICEBERG: "Tables that the Iceberg specification decides",
    RANGE_DELETES: "Range deletes and checksums: this format's own rules",
}


@dataclass(frozen=True, slots=True)
class Matrix:
    """The results of several readers for the cases."""

    cases: tuple[WrittenCase, ...]
    readers: tuple[ReaderResult, ...]

    def counts(self, reader: ReaderResult, part: str) -> Counter[Verdict]:
        return Counter(reader.by_case[case.id].verdict for case in self.cases if case.part == part)

    def parts(self) -> Iterator[tuple[str, list[WrittenCase]]]:
        """The parts that have cases, and these cases."""
        for part in _PARTS:
            chosen = [case for case in self.cases if case.part == part]
            if chosen:
                yield part, chosen

    def failures(self) -> Iterator[tuple[WrittenCase, ReaderResult, CaseResult]]:
        """Every wrong or crashed cell, reader by reader."""
        for reader in self.readers:
            for case in self.cases:
                result = reader.by_case[case.id]
                if result.verdict in (Verdict.WRONG, Verdict.CRASHED):
                    yield case, reader, result

    def to_dict(self) -> dict[str, Any]:
        return {
            "readers": [
                {"name": each.reader.name, "version": each.version, "command": shlex.join(each.reader.command)}
                for each in self.readers
            ],
            "cases": [
                {
                    "id": case.id,
                    "part": case.part,
                    "results": {
                        each.reader.name: {
                            "verdict": each.by_case[case.id].verdict.value,
                            "detail": each.by_case[case.id].detail,
                        }
                        for each in self.readers
                    },
                }
                for case in self.cases
            ],
        }


def render_matrix(matrix: Matrix) -> Group:
    """Tables for a terminal, followed by the reasons of wrong and crashed cells."""
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

    parts: list[Any] = []
    for part, cases in matrix.parts():
        table = RichTable(title=_PARTS[part], title_justify="left", box=None, pad_edge=False)
        table.add_column("case")
        for reader in matrix.readers:
            table.add_column(Text(reader.version))
        for case in cases:
            verdicts = [reader.by_case[case.id].verdict for reader in matrix.readers]
            table.add_row(Text(case.id), *(Text(each.value, style=_STYLES[each]) for each in verdicts))
        parts += [table, Text("")]
    for case, reader, result in matrix.failures():
        parts.append(Text(f"{case.id}, {reader.version}: {result.verdict.value}. {result.detail}"))
        parts.append(Text(f"    {reproduction(case, reader)}", no_wrap=True, overflow="ignore"))
    return Group(*parts)


def render_markdown(matrix: Matrix) -> str:
    """The matrix as Markdown: counts, cells, and each wrong or crashed one with its rule and command."""
    return "\n".join([*_HEAD, *_counted(matrix), *_cells(matrix), *_refusals(matrix), *_explained(matrix)]) + "\n"


def reproduction(case: WrittenCase, reader: ReaderResult) -> str:
    """The command that reproduces a cell, including its table."""
    from tableformat.corpus.check import READERS

    name = reader.reader.name
    if name not in OF_THIS_ENVIRONMENT:
        name = f"{name}={shlex.join(reader.reader.command).replace(str(READERS), '{readers}')}"
    return f"tableformat corpus check --case {case.id} --reader {shlex.quote(name)}"


def _counted(matrix: Matrix) -> Iterator[str]:
    for part, cases in matrix.parts():
        yield f"## {_PARTS[part]}: {len(cases)} tables"
        yield ""
        yield "| reader | right | refused | wrong | crashed |"
        yield "|---|---|---|---|---|"
        for reader in matrix.readers:
            counts = matrix.counts(reader, part)
            yield f"| {reader.version} | {' | '.join(str(counts[verdict]) for verdict in Verdict)} |"
        yield ""


def _cells(matrix: Matrix) -> Iterator[str]:
    for part, cases in matrix.parts():
        name = _PARTS[part].partition(":")[0]
        yield f"## Cell by cell: {name[0].lower()}{name[1:]}"
        yield ""
        yield f"| case | decided by | {' | '.join(reader.version for reader in matrix.readers)} |"
        yield f"|---|---|{'---|' * len(matrix.readers)}"
        for case in cases:
            verdicts = (_MARKS[reader.by_case[case.id].verdict] for reader in matrix.readers)
            yield f"| {case.id} | {', '.join(rule.id for rule in case.rules)} | {' | '.join(verdicts)} |"
        yield ""


def _refusals(matrix: Matrix) -> Iterator[str]:
    """The messages for readable tables that were refused, without paths, and the number of tables for each message."""
    yield "## Refusals of tables that the Iceberg specification decides"
    yield ""
    yield "| reader | tables | message |"
    yield "|---|---|---|"
    for reader in matrix.readers:
        results = (reader.by_case[case.id] for case in matrix.cases if case.part == ICEBERG)
        messages = Counter(_message(each) for each in results if each.verdict is Verdict.REFUSED)
        for message, count in messages.most_common():
            yield f"| {reader.version} | {count} | `{message}` |"
    yield ""


def _message(result: CaseResult) -> str:
    text = (result.detail or "").partition(" Stack Trace:")[0].replace("|", "/").replace("`", "'")
    text = re.sub(r"(?:file:/|(?<![\w:/])/)[\w./-]+", "PATH", text)
    text = re.sub(r"\bo\d+\.", "", text)  # the number of a call from Python to Java
    return text[:_MESSAGE_CHARACTERS]


def _explained(matrix: Matrix) -> Iterator[str]:
    shown: Sequence[tuple[WrittenCase, ReaderResult, CaseResult]] = list(matrix.failures())
    if not shown:
        return
    yield "## Wrong and crashed, one by one"
    for case, reader, result in shown:
        yield ""
        yield f"**{case.title}** (version {case.format_version}), {reader.version}: {result.verdict.value}."
        yield " ".join(f"{rule.id}: {rule.title}." for rule in case.rules)
        yield ""
        yield "```"
        yield result.detail or ""
        yield reproduction(case, reader)
        yield "```"
