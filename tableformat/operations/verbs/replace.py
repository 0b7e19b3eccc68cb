"""`replace`: replace all rows of a key prefix, without reading any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tableformat.keys.key_columns import leading_columns
from tableformat.operations.drafts.draft import Draft
from tableformat.operations.options import one_of
from tableformat.operations.verbs.delete_prefix import stage_prefixes
from tableformat.write.rows.distinct import PrefixCollector


def replace(draft: Draft, *, rows: Any, prefix: Sequence[str] | None = None, on_refused: str = "fail") -> None:
    """Stage the rows, and the delete of every prefix that occurs in them; `prefix` defaults to the whole key.

    Rows and delete carry one sequence number, and RD-2 is strict, so the new rows stay. A diverted row takes all rows
    of its prefix along, whose old rows stay (CP-24).
    """
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    names = leading_columns(draft.key_names, prefix if prefix is not None else draft.key_names)
    draft.begin_verb()
    conformed = draft.conformed(rows, on_refused, whole_groups=names)
    collector = PrefixCollector(conformed.schema, names)
    draft.add_rows(conformed, collector.through(iter(conformed)))
    if collector.prefixes.num_rows:
        stage_prefixes(draft, collector.prefixes)
