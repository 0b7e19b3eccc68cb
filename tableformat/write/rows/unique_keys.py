"""Refuses rows of one write that have the same whole key (CP-67)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from tableformat.errors import DuplicateKeyError
from tableformat.write.rows.held_batches import HeldBatches
from tableformat.write.rows.last_per_key import last_row_per_key
from tableformat.write.rows.one_batch import one_array
from tableformat.write.rows.sorting import are_distinct

_MEMORY_BYTES: Final = 32 * 1024 * 1024
"""Memory for the search for equal keys, if there are too many to keep in memory."""
_ROW: Final = "row"


def with_unique_keys(
    batches: Iterable[pa.RecordBatch], key: Sequence[str], *, table: str, memory_bytes: int
) -> Iterator[pa.RecordBatch]:
    """The same batches. CP-67: raises DuplicateKeyError after the last one if two rows have the same key. Null equals
    null (DA-4). Keys that do not fit into the memory are stored in a temporary file.

    `table` is for the message.
    """
    stream = iter(batches)
    first = next(stream, None)
    if first is None:
        return
    with HeldBatches(first.select(list(key)).schema, held_bytes=memory_bytes) as held:
        held.append(_own(first.select(list(key))))
        yield first
        for batch in stream:
            held.append(_own(batch.select(list(key))))
            yield batch
        check_unique(held, key, table=table)


def check_unique(keys: HeldBatches, key: Sequence[str], *, table: str) -> None:
    """CP-67: raises DuplicateKeyError if two of the keys are equal."""
    if not keys.is_spilled and _are_distinct(pa.Table.from_batches(list(keys), keys.schema)):
        return
    numbered = pa.RecordBatchReader.from_batches(keys.schema.append(pa.field(_ROW, pa.int64())), _numbered(keys))
    row_count, unique_count, first = sum(batch.num_rows for batch in keys), 0, None
    for batch in last_row_per_key(numbered, key, memory_bytes=_MEMORY_BYTES):
        # These are the numbers of the last row of each key. A missing number belongs to a row whose key occurs again.
        left_out = np.asarray(batch.column(len(keys.schema))) != np.arange(unique_count, unique_count + batch.num_rows)
        if first is None and left_out.any():
            first = unique_count + int(left_out.argmax())
        unique_count += batch.num_rows
    if first is not None:
        raise duplicate_keys_error(row_count - unique_count, key, _row(keys, first), table=table)


def duplicate_keys_error(
    count: int, key: Sequence[str], first: Mapping[str, object], *, table: str
) -> DuplicateKeyError:
    """CP-67. `count`: number of rows whose key another row has too. `first`: one such key."""
    return DuplicateKeyError(
        f"{count:,} of the rows for {table} have the same key ({', '.join(key)}) as another row, the first {first}. "
        "Nothing was committed. Pass each key once. Or pass order_by (in Spark the option order-by) with the columns "
        "that order older and newer rows, such as the offset of a message; rows with equal values in these columns "
        "are one message."
    )


def _own(keys: pa.RecordBatch) -> pa.RecordBatch:
    """A copy, because the keys are kept longer than the rows, and the columns of a batch may share one buffer."""
    return keys.take(pa.array(np.arange(keys.num_rows)))


def _are_distinct(keys: pa.Table) -> bool:
    """Whether all keys are distinct. False if this is not known."""
    return len(keys) < 2 or bool(are_distinct([one_array(column) for column in keys.columns]))


def _numbered(keys: HeldBatches) -> Iterator[pa.RecordBatch]:
    first = 0
    for batch in keys:
        yield batch.append_column(_ROW, pa.array(np.arange(first, first + batch.num_rows)))
        first += batch.num_rows


def _row(keys: HeldBatches, number: int) -> dict[str, object]:
    for batch in keys:
        if number < batch.num_rows:
            row: dict[str, object] = batch.slice(number, 1).to_pylist()[0]
            return row
        number -= batch.num_rows
    raise AssertionError("the number is of one of the rows")
