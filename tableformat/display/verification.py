"""Renders a verification: its scope, the findings, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from tableformat.display import text
from tableformat.display.command_line import command_line
from tableformat.display.grid import QUIET_STYLE, facts
from tableformat.maintenance.verification.findings import Severity, VerificationFinding, VerifyResult

SHOWN_OF_A_KIND: Final = 20
"""Maximum number of displayed findings; JSON has all of them."""
_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "yellow"}


def render_verification(
    result: VerifyResult, proofs: Sequence[tuple[str, str]] = (), *, is_dry_run: bool = False
) -> RenderableType:
    """The whole page. `proofs` are the delete files that a repair dropped; `command` is displayed unchanged."""
    where = f", branch {result.branch}" if result.branch != "main" else ""
    parts: list[RenderableType] = [Text.assemble((result.table, "bold"), where), Text(), facts(_figures(result))]
    if proofs:
        verb = "Would drop" if is_dry_run else "Dropped"
        parts += [Text(), Text(f"{verb} {text.counted(len(proofs), 'delete file')}", style="bold")]
        parts += [Text(f"- {location}: {proof}") for location, proof in proofs]
    if not result.findings:
        return Group(*parts, Text(), Text("No problems found.", style="bold green"))
    ordered = sorted(result.findings, key=lambda each: (each.severity is Severity.WARNING, each.kind))
    for _, found in groupby(ordered, key=lambda each: each.kind):
        parts += [Text(), *_of_one_kind(list(found))]
    return Group(*parts)


def _figures(result: VerifyResult) -> list[tuple[str, str | Text]]:
    rows: list[tuple[str, str | Text]] = [
        ("checked", f"{text.counted(result.snapshot_count, 'snapshot')} in {result.duration_seconds:.1f} s"),
        (
            "files",
            f"{text.counted(result.manifest_count, 'manifest')}, {text.counted(result.data_file_count, 'data file')}, "
            f"{text.counted(result.delete_file_count, 'delete file')}",
        ),
    ]
    if result.deep:
        rows.append(("rows read", text.count(result.row_count)))
        if result.unchecksummed_file_count:
            unknown = text.counted(result.unchecksummed_file_count, "file")
            rows.append(("no checksums", f"{unknown}: changed values in these files cannot be detected"))
    if result.repeated_key_count is not None:
        rows.append(("repeated keys", text.count(result.repeated_key_count)))
    return rows


def _of_one_kind(findings: Sequence[VerificationFinding]) -> list[RenderableType]:
    first = findings[0]
    lines: list[RenderableType] = [
        Text.assemble((f"{first.severity}: {first.kind}", _STYLES[first.severity]), f"  {len(findings):,}")
    ]
    for each in findings[:SHOWN_OF_A_KIND]:
        lines += [Text(f"- {each.file}"), Text(f"  {each.what}"), Text(f"  {each.next_step}", style=QUIET_STYLE)]
        lines += [command_line(each.command)] if each.command is not None else []
    if len(findings) > SHOWN_OF_A_KIND:
        lines.append(Text(f"  and {len(findings) - SHOWN_OF_A_KIND:,} more; -o json has all", style=QUIET_STYLE))
    return lines
