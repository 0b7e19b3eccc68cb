"""Records the filters of deletes that scan for rows, in the summary of their snapshot (RP-13)."""

from __future__ import annotations

import json

from pyiceberg.expressions import BooleanExpression

from tableformat.operations.drafts.draft import Draft
from tableformat.operations.ranges.later_deletes import DELETE_FILTERS, has_retired_ranges


def record_filters(draft: Draft, *filters: BooleanExpression) -> None:
    """RP-13: while a range is retired, add the filters of the deletes to the summary of a snapshot that scanned for
    rows. `restore` may apply them to the range. An UPDATE or MERGE has no filters, because it changes no retired row.
    """
    if has_retired_ranges(draft.view):
        known = json.loads(draft.said.get(DELETE_FILTERS) or "[]")
        added = [json.loads(each.model_dump_json()) for each in filters]
        draft.say(DELETE_FILTERS, json.dumps([*known, *added]))
