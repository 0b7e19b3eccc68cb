"""Change events as the caller passed them: columns of the row, of the operation, and of the order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from tableformat.errors import InvalidArgumentError, UnknownColumnError
from tableformat.write.rows.debezium import ENVELOPE_OP, flat_reader, position_columns
from tableformat.write.rows.last_per_key import refuse_incomparable
from tableformat.write.rows.rows import as_reader

ENVELOPES: Final = ("debezium",)
DEFAULT_OP: Final = "_op"
DEFAULT_ORDER: Final = "_ts"


@dataclass(frozen=True, slots=True)
class ChangeEvents:
    """Events with a column for each column of the row. They can be read once."""

    reader: pa.RecordBatchReader
    op: str
    """The column of the operation (CF-12)."""
    order_by: tuple[str, ...]
    """The columns that order the events. If empty, the events are in the order of the input."""

    def row_columns(self, table_columns: Sequence[str]) -> list[str]:
        """The columns of the row. The operation and order columns are included if the table has them."""
        about = {self.op, *self.order_by}
        return [name for name in self.reader.schema.names if name in table_columns or name not in about]


def change_events(
    changes: Any, *, op: str, order_by: str | Sequence[str] | None, envelope: str | None, whole_images: bool
) -> ChangeEvents:
    """The events of a call. With `whole_images`, an update needs the image of the whole row before it (CF-15).

    Raises UnknownColumnError for a missing column, InvalidArgumentError for an unknown envelope.
    """
    if envelope is not None and envelope not in ENVELOPES:
        raise InvalidArgumentError(
            f"envelope={envelope!r} is not supported. Nothing was written. Use 'debezium' for events with the "
            "columns before, after, op and source. Omit envelope for events whose rows have their own columns."
        )
    reader = as_reader(changes, what="changes")
    order = () if order_by is None else (order_by,) if isinstance(order_by, str) else tuple(order_by)
    if order_by is not None and not order:
        raise InvalidArgumentError("order_by must be one or more columns, the most significant one first, or None.")
    if envelope is not None:
        of_source = order == (DEFAULT_ORDER,) and DEFAULT_ORDER not in reader.schema.names
        if of_source:
            order = position_columns(reader.schema)
        flat, order = flat_reader(
            reader, op=ENVELOPE_OP if op == DEFAULT_OP else op, order_by=order, whole_images=whole_images
        )
        return ChangeEvents(flat, flat.schema.names[0], order)
    for names, option in (((op,), "op"), (order, "order_by")):
        for name in names:
            if name not in reader.schema.names:
                raise UnknownColumnError(name, reader.schema.names, where=f"the changes ({option}=)")
    refuse_incomparable(reader.schema, order)
    return ChangeEvents(reader, op, order)
