"""Truncate events without columns of the row: `{"op": "t", "before": null, "after": null}`."""

from __future__ import annotations

import numpy as np

from tableformat.errors import InvalidArgumentError
from tableformat.operations.staging.draft import Draft
from tableformat.operations.verbs.delete import stage_delete
from tableformat.properties import ORDER_COLUMN
from tableformat.write.rows.change_codes import Change, kinds_of
from tableformat.write.rows.change_events import ChangeEvents


def stage_truncates(draft: Draft, events: ChangeEvents, others: InvalidArgumentError) -> None:
    """CF-13: empty the table if there is a truncate event. Raises `others` for any other event."""
    is_emptied = False
    for batch in events.reader:
        is_truncate = kinds_of(batch.column(events.op), events.op) == Change.TRUNCATE
        if not np.all(is_truncate):
            raise others
        is_emptied |= batch.num_rows > 0
    draft.begin_verb()
    if is_emptied:
        refuse_ordered_truncate(draft)
        draft.act_as("delete")
        stage_delete(draft, None, mode="auto")


def refuse_ordered_truncate(draft: Draft) -> None:
    """CP-71: raise InvalidArgumentError on a table with an order column. A truncate keeps no values for the keys that
    it deletes, so older events would restore them."""
    column = draft.order.column()
    if column is not None:
        raise InvalidArgumentError(
            f"truncate events are not supported for {draft.name}: it compares events by its order column "
            f"{column.name!r} ({ORDER_COLUMN}), and a truncate stores no such value for the keys that it deletes. "
            "Nothing was written. Write the earlier events, delete all rows, and write the later events. Or send a "
            "delete event for each key."
        )
