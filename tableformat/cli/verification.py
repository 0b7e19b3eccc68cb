"""`verify`: checks a table against its metadata, and repairs problems if nothing is lost by it."""

from __future__ import annotations

import ast
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tableformat.cli.options import BranchOption, DryRunOption, TableArgument
from tableformat.cli.running import running
from tableformat.cli.session import Session

if TYPE_CHECKING:
    from tableformat.maintenance.verification.findings import VerifyResult
    from tableformat.table import Table


def verify(
    context: typer.Context,
    table: TableArgument,
    *,
    deep: Annotated[bool, typer.Option("--deep", help="Also read every file: rows, bounds, order, checksums.")] = False,
    keys: Annotated[
        bool, typer.Option("--keys", help="Also look for keys that more than one row of the current snapshot has.")
    ] = False,
    snapshot_id: Annotated[
        int | None, typer.Option("--snapshot", metavar="ID", help="Only this snapshot (default: all retained ones).")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="First drop delete files of the branch that match no rows.")
    ] = False,
    erased: Annotated[
        Path | None,
        typer.Option(
            "--erased",
            metavar="FILE",
            help="Also search every file for the rows of this certificate of `erase`.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    dry_run: DryRunOption = False,
    branch: BranchOption = None,
) -> None:
    """Check that every file exists and matches the metadata, and advise what to do otherwise.

    Ends with status 1 if a finding is an error (rows cannot be read, or a reader may get them wrong), if --keys finds a
    key of several rows, or if it could not compare all keys.

    Example: tableformat verify shop.orders --deep
    """
    from tableformat.display.verification import render_verification
    from tableformat.maintenance.erasure.certificate import ErasureCertificate

    if dry_run and not repair:
        raise typer.BadParameter(
            "--dry-run requires --repair. Without --repair, nothing is changed.", param_hint="--dry-run"
        )
    certificate = None if erased is None else ErasureCertificate.from_json(erased.read_text(encoding="utf-8"))
    session = Session.of(context)
    handle = session.writable_table(table, branch) if repair else session.table(table, branch)
    with running(session, handle, dry_run=dry_run or not repair) as progress:
        mended = handle.maintenance.repair(dry_run=dry_run, progress=progress).dropped_deletes if repair else None
        found = handle.verify(deep=deep, keys=keys, snapshot_id=snapshot_id, erased=certificate, progress=progress)
    found = _with_commands(found, session, handle)
    proofs = () if mended is None else mended.proofs
    session.output.emit(
        lambda: {**found.to_dict(), "repaired": [{"file": file, "proof": proof} for file, proof in proofs]},
        lambda: render_verification(found, proofs, is_dry_run=dry_run),
    )
    if not found.is_clean or (keys and found.repeated_key_count != 0):
        raise typer.Exit(1)


def _with_commands(found: VerifyResult, session: Session, table: Table) -> VerifyResult:
    """The calls of the findings as command lines to paste."""
    from dataclasses import replace

    return replace(
        found,
        findings=tuple(
            each if each.command is None else replace(each, command=_command_line(each.command, session, table))
            for each in found.findings
        ),
    )


def _command_line(call: str, session: Session, table: Table) -> str:
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call), call
    assert isinstance(node.func, ast.Attribute), call
    arguments = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
    match node.func.attr:
        case "rollback":
            return session.command(
                f"rollback {shlex.quote(table.name)} {arguments['snapshot_id']}", branch=table.branch
            )
        case "expire_snapshots":
            ids = " ".join(f"--snapshot-id {each}" for each in arguments["snapshot_ids"])
            return session.command(f"expire-snapshots {shlex.quote(table.name)} {ids}", branch="main")
        case _:
            return session.command(f"verify {shlex.quote(table.name)} --repair", branch=table.branch)
