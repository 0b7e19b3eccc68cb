"""`append`: add rows."""

from __future__ import annotations

from typing import Any, Final

from tableformat.operations.options import one_of
from tableformat.operations.row_lookup.duplicates import append_unless_present
from tableformat.operations.staging.draft import Draft
from tableformat.operations.verbs.upsert import upsert

ON_DUPLICATE: Final = ("allow", "error", "ignore", "replace")
ON_REFUSED: Final = ("fail", "divert")


def append(draft: Draft, *, rows: Any, on_duplicate: str = "allow", on_refused: str = "fail") -> None:
    """Stage rows. Only "error" and "ignore" read the table: the keys in files that may hold the new ones."""
    one_of(on_duplicate, ON_DUPLICATE, option="on_duplicate")
    one_of(on_refused, ON_REFUSED, option="on_refused")
    if on_duplicate == "replace":
        upsert(draft, rows=rows, on_refused=on_refused)
        return
    draft.begin_verb()
    if on_duplicate == "allow":
        draft.add_rows(draft.conformed(rows, on_refused))
    else:
        append_unless_present(draft, draft.conformed(rows, on_refused), fail=on_duplicate == "error")
