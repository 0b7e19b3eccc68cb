"""Spans in the form that `SpanBoundaries` of the Java side searches.

    boundary count u32 | has numbers u32 | offset of each boundary, and the end: u32 | number of each span: i64 | cuts

Everything is little-endian. The boundaries are the encoded cuts (RD-1): lower 0, upper 0, lower 1, upper 1 and so on.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.deletes.spans.spans import SpanArray
from tableformat.errors import UnsupportedFeatureError
from tableformat.keys.sort_words import value_bytes

_LARGEST_BYTES = 1 << 31


def span_bytes(spans: SpanArray, *, is_numbered: bool) -> bytes:
    """Sorted, disjoint spans. With `is_numbered`, each has its sequence number.

    Raises UnsupportedFeatureError for 2 GB of cuts or more.
    """
    count = len(spans)
    cuts = pa.concat_arrays([spans.lower.encoded, spans.upper.encoded])
    in_turns = cuts.take(pa.array(np.arange(2 * count).reshape(2, count).T.ravel()))
    values = value_bytes(in_turns)
    if len(values) >= _LARGEST_BYTES:
        raise UnsupportedFeatureError(
            f"{count} spans of range deletes are pending, more than Spark's executors can compare. Run convert_deletes."
        )
    offsets = np.zeros(2 * count + 1, "<u4")
    np.cumsum(np.asarray(pc.binary_length(in_turns)), out=offsets[1:])
    header = np.array([2 * count, is_numbered], "<u4")
    parts = [header.tobytes(), offsets.tobytes()]
    if is_numbered:
        assert spans.sequence_numbers is not None, "only spans with numbers are compared with those of files"
        parts.append(spans.sequence_numbers.astype("<i8").tobytes())
    return b"".join([*parts, values.tobytes()])
