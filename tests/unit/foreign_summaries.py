"""Commits whose snapshot summaries are the ones that another program would write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyiceberg.table.snapshots import Summary
from pyiceberg.table.update import AddSnapshotUpdate

from tableformat.catalogs.embedded_catalog import EmbeddedCatalog


@contextmanager
def stating(change: Callable[[Summary], Summary | None]) -> Iterator[None]:
    """Within the block, `change` replaces the summary of every new snapshot."""
    commit = EmbeddedCatalog.commit_table

    def changed(update: Any) -> Any:
        if not isinstance(update, AddSnapshotUpdate):
            return update
        summary = change(update.snapshot.summary) if update.snapshot.summary is not None else None
        return AddSnapshotUpdate(snapshot=update.snapshot.model_copy(update={"summary": summary}))

    def commit_changed(catalog: Any, table: Any, requirements: Any, updates: Any) -> Any:
        return commit(catalog, table, requirements, tuple(map(changed, updates)))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(EmbeddedCatalog, "commit_table", commit_changed)
        yield


def without_totals(summary: Summary) -> Summary:
    """A summary like the ones of DuckDB 1.5.5's appends, but without any total."""
    return _with(summary, {name: None for name in summary.additional_properties if name.startswith("total-")})


def with_wrong_totals(summary: Summary) -> Summary:
    """There are no delete files, and twice the rows."""
    names = ("total-delete-files", "total-equality-deletes", "total-position-deletes")
    records = int(summary.additional_properties.get("total-records", "0"))
    return _with(summary, {**dict.fromkeys(names, "0"), "total-records": str(2 * records + 7)})


def _with(summary: Summary, changed: dict[str, str | None]) -> Summary:
    fields = {**summary.additional_properties, **changed}
    return Summary(summary.operation, **{name: text for name, text in fields.items() if text is not None})
