"""`rollback`, `tag` and `branch`: commands that move refs and write no rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tableformat.cli.confirm import ask
from tableformat.cli.options import WritableTableArgument, YesOption
from tableformat.cli.session import Session, view_of

if TYPE_CHECKING:
    from tableformat.table import Table


def rollback(
    context: typer.Context,
    table: WritableTableArgument,
    snapshot_id: Annotated[int | None, typer.Argument(metavar="SNAPSHOT_ID", help="The snapshot to return to.")] = None,
    *,
    as_of: Annotated[
        str | None, typer.Option("--as-of", metavar="TIME", help="Return to the state at this time (ISO 8601).")
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", metavar="NAME", help="Return to the snapshot of a tag.")] = None,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="Roll back this branch instead of main.")
    ] = None,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay", help="Also forget the batches that are rolled back, so that their writers may repeat them."
        ),
    ] = False,
    yes: YesOption = False,
) -> None:
    """Make an earlier snapshot current again. Nothing is removed: the later snapshots stay readable by id.

    Example: tableformat rollback shop.orders --as-of 2026-01-31T12:00
    """
    from rich.text import Text

    from tableformat.display.text import counted
    from tableformat.metadata.snapshot_choice import ancestors

    if snapshot_id is None and as_of is None and tag is None:
        raise typer.BadParameter("pass a SNAPSHOT_ID, --as-of or --tag; `tableformat history` lists the snapshots.")
    session = Session.of(context)
    handle = session.writable_table(table, branch)
    target = view_of(handle, snapshot_id=snapshot_id, as_of=as_of, tag=tag).snapshot
    assert target is not None, "a snapshot chosen by id, time or tag exists"
    before = handle.snapshot_id
    line = [snapshot.snapshot_id for snapshot in ancestors(handle.metadata, handle.view.snapshot)]
    undone = line[: line.index(target.snapshot_id)] if target.snapshot_id in line else []
    taken_back = counted(len(undone), "snapshot")
    if undone and not yes:
        ask(f"Roll back {taken_back} of {handle.name}, branch {handle.branch}?", session)
    handle.rollback(snapshot_id=target.snapshot_id, replay=replay)
    told = f"{handle.name}: {handle.branch} is at snapshot {target.snapshot_id}; {taken_back} rolled back."
    session.output.emit(
        lambda: {
            "table": handle.name,
            "branch": handle.branch,
            "previous_snapshot_id": before,
            "current_snapshot_id": target.snapshot_id,
            "undone_snapshot_ids": undone,
        },
        lambda: Text(told),
    )


def tag(
    context: typer.Context,
    table: WritableTableArgument,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The tag; without it, all tags are listed.")
    ] = None,
    snapshot_id: Annotated[
        int | None, typer.Argument(metavar="SNAPSHOT_ID", help="The snapshot to tag; default the current one.")
    ] = None,
    *,
    delete: Annotated[bool, typer.Option("--delete", "-d", help="Remove the tag.")] = False,
) -> None:
    """Name a snapshot, so that it is kept and can be found again; list or remove such names.

    Example: tableformat tag shop.orders before-audit
    """
    from rich.text import Text

    if name is None and delete:
        raise typer.BadParameter("--delete needs the NAME of a tag.")
    if delete and snapshot_id is not None:
        raise typer.BadParameter("--delete does not accept a SNAPSHOT_ID.")
    session = Session.of(context)
    if name is None:
        _list_tags(session, session.table(table))
        return
    handle = session.writable_table(table)
    if delete:
        handle.drop_tag(name)
        told, at = f"{handle.name}: tag {name} removed.", None
    else:
        handle.create_tag(name, snapshot_id)
        at = handle.metadata.refs[name].snapshot_id
        told = f"{handle.name}: tag {name} is at snapshot {at}."
    session.output.emit(lambda: {"table": handle.name, "tag": name, "snapshot_id": at}, lambda: Text(told))


def branch(
    context: typer.Context,
    table: WritableTableArgument,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The branch; without it, all branches are listed.")
    ] = None,
    snapshot_id: Annotated[
        int | None, typer.Argument(metavar="SNAPSHOT_ID", help="Its first snapshot; default the current snapshot.")
    ] = None,
    *,
    drop: Annotated[bool, typer.Option("--drop", help="Remove the branch; its own snapshots may then expire.")] = False,
    yes: YesOption = False,
) -> None:
    """Start a branch; list or remove branches.

    Example: tableformat branch shop.orders ingest
    """
    from rich.text import Text

    if name is None and drop:
        raise typer.BadParameter("--drop needs the NAME of a branch.")
    if drop and snapshot_id is not None:
        raise typer.BadParameter("--drop does not accept a SNAPSHOT_ID.")
    session = Session.of(context)
    if name is None:
        _list_branches(session, session.table(table))
        return
    handle = session.writable_table(table)
    if drop:
        if not yes:
            ask(f"Remove branch {name} of {handle.name}?", session)
        handle.drop_branch(name)
        told, at = f"{handle.name}: branch {name} removed.", None
    else:
        handle.create_branch(name, snapshot_id)
        at = handle.metadata.refs[name].snapshot_id
        told = f"{handle.name}: branch {name} is at snapshot {at}."
    session.output.emit(lambda: {"table": handle.name, "branch": name, "snapshot_id": at}, lambda: Text(told))


def _list_branches(session: Session, table: Table) -> None:
    from tableformat.display.grid import Column, grid

    branches = _refs_of(table, "branch")
    if not branches and not session.output.is_json:
        session.output.note(f"{table.name} has no branches.")
        return
    session.output.emit(
        lambda: {
            "table": table.name,
            "branches": [{"branch": name, "snapshot_id": at} for name, at in branches.items()],
        },
        lambda: grid(
            [Column("branch"), Column("snapshot", is_number=True)], [(name, str(at)) for name, at in branches.items()]
        ),
    )


def _refs_of(table: Table, kind: str) -> dict[str, int]:
    """The snapshots of the branches, or of the tags, by name."""
    refs = sorted(table.metadata.refs.items())
    return {name: ref.snapshot_id for name, ref in refs if ref.snapshot_ref_type.value == kind}


def _list_tags(session: Session, table: Table) -> None:
    from tableformat.display.grid import Column, grid

    tags = _refs_of(table, "tag")
    if not tags and not session.output.is_json:
        session.output.note(f"{table.name} has no tags.")
        return
    session.output.emit(
        lambda: {"table": table.name, "tags": [{"tag": name, "snapshot_id": at} for name, at in tags.items()]},
        lambda: grid(
            [Column("tag"), Column("snapshot", is_number=True)], [(name, str(at)) for name, at in tags.items()]
        ),
    )
