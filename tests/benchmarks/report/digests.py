"""Digests of rows whose figures are exact in every system, so that two answers can be compared."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Digest = dict[str, Any]


def digest(rows: pa.Table) -> Digest:
    """For each column its sum and nulls (for text its length and both ends), and the first two numbers of each row
    combined.

    Amounts are integers, so that their sums do not depend on the order.
    """
    found: Digest = {"rows": rows.num_rows}
    numbers = []
    for name in sorted(rows.column_names):
        column = rows[name]
        found[f"nulls {name}"] = column.null_count
        if pa.types.is_date(column.type):
            column = column.cast(pa.date32()).cast(pa.int32())
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            found[f"sum {name}"] = float(pc.sum(column.cast(pa.float64())).as_py() or 0)
            numbers.append(column.cast(pa.int64()))
        else:
            text = column.cast(pa.string())
            found[f"length {name}"] = pc.sum(pc.utf8_length(text)).as_py() or 0
            found[f"ends {name}"] = [pc.min(text).as_py(), pc.max(text).as_py()]
    if len(numbers) > 1:
        found["together"] = pc.sum(pc.multiply(pc.bit_wise_and(numbers[0], 1023), numbers[-1])).as_py() or 0
    return found


def differences(found: Digest, expected: Digest) -> list[str]:
    """The differences in words; only the expected columns are compared."""
    return [
        f"{name} is {found.get(name)!r}, not {value!r}" for name, value in expected.items() if found.get(name) != value
    ]
