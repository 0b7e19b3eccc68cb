"""The sort marker: a statement in a data file's Parquet footer that its rows are sorted by the key (RD-11).

Iceberg's `sort_order_id` is not precise enough: engines sort strings by UTF-16 or by bytes, and nulls and NaN first or
last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from tableformat.keys.encoding import ENCODING_VERSION

SORTED_BY: Final = b"tableformat.sorted-by"
"""Key of the Parquet key-value metadata."""


def marker_bytes(field_ids: Sequence[int]) -> bytes:
    """FM-7: the footer value that promises rows in the key order (RD-1) of these columns, nulls first."""
    return json.dumps({"field-ids": list(field_ids), "encoding-version": ENCODING_VERSION}).encode()


def sorted_by(key_value_metadata: Mapping[bytes, bytes] | None) -> tuple[int, ...] | None:
    """RD-11, FM-24: the field ids by which the rows are sorted; None without a marker of a known encoding version.

    A marker that cannot be read promises nothing. Rows are then compared one by one, which is correct for any order.
    """
    stored = (key_value_metadata or {}).get(SORTED_BY)
    return None if stored is None else _promised(stored)


@lru_cache(maxsize=256)
def _promised(stored: bytes) -> tuple[int, ...] | None:
    """The content of a marker. The files of one table have the same marker."""
    try:
        marker = json.loads(stored)
    except (ValueError, RecursionError):
        return None
    if not isinstance(marker, dict) or marker.get("encoding-version") != ENCODING_VERSION:
        return None
    field_ids = marker.get("field-ids")
    if not isinstance(field_ids, list) or not field_ids or not all(type(field_id) is int for field_id in field_ids):
        return None
    return tuple(field_ids)
