"""Values of rows in JSON. Types that JSON lacks are in Iceberg's single-value form.

Numbers and booleans are unchanged. Decimals are text, because most readers lose digits of a JSON number. Dates, times
and UUIDs are text in ISO form, bytes are hexadecimal digits, NaN and the infinities are text. Source: Iceberg table
specification, "JSON single-value serialization".
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

_NOT_FINITE: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


def json_rows(batch: pa.RecordBatch, names: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a batch under the given column names."""
    import pyarrow as pa

    from tableformat.display.rows import python_values

    columns = [[json_value(value) for value in python_values(pa.chunked_array([column]))] for column in batch.columns]
    rows: Iterator[tuple[Any, ...]] = zip(*columns, strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def json_value(value: Any) -> Any:
    """A Python value of an Arrow column in its JSON form."""
    told: Any = str(value)
    match value:
        case None | bool() | int() | str():
            told = value
        case float():
            told = value if math.isfinite(value) else _NOT_FINITE.get(value, "NaN")
        case dt.date() | dt.time():
            told = value.isoformat()
        case bytes():
            told = value.hex()
        case list():
            told = [json_value(inner) for inner in value]
        case dict():
            told = {str(json_value(name)): json_value(inner) for name, inner in value.items()}
    return told
