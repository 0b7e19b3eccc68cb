"""Which Bloom filters the writers of a table make, by its properties.

Source of names and defaults: `TableProperties.java` of Apache Iceberg; of the size of a filter: the Parquet format.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from pyiceberg.schema import Schema
from pyiceberg.types import BooleanType, IcebergType, NestedField, PrimitiveType, StructType, UnknownType

from tableformat.errors import InvalidArgumentError, UnknownColumnError
from tableformat.properties import positive_int

ENABLED: Final = "write.parquet.bloom-filter-enabled.column."
RATE: Final = "write.parquet.bloom-filter-fpp.column."
DISTINCT_COUNT: Final = "write.parquet.bloom-filter-ndv.column."
MAX_BYTES: Final = "write.parquet.bloom-filter-max-bytes"
_RATE_DEFAULT: Final = 0.01
_MAX_BYTES_DEFAULT: Final = 1024 * 1024
_BLOCK_BYTES: Final = 32
"""And the bits of each of its words."""
_WORDS: Final = 8
_VALUES_IN_BLOCK_MAX: Final = 512.0
_HALVINGS: Final = 50
_RATE_LEAST: Final = 1e-12


@dataclass(frozen=True, slots=True)
class FilterOption:
    """A column that gets a filter in each row group."""

    path: tuple[str, ...]
    """Names from the top-level column down."""
    false_positive_rate: float
    distinct_count: int | None
    """How many values a filter is made for; None: as many as the rows have."""
    max_bytes: int

    @property
    def writer_rate(self) -> float:
        """The rate that writers have to be told."""
        return writer_rate(self.false_positive_rate)

    @property
    def most_values(self) -> int:
        """Values for which a filter of that rate has at most `max_bytes`; filters have a power of two of them."""
        bits = 8 * (1 << self.max_bytes.bit_length() - 1)
        return max(1, int(-bits * math.log1p(-(self.writer_rate ** (1 / 8))) / 8))


def filter_options(properties: Mapping[str, str], schema: Schema) -> list[FilterOption]:
    """FM-27: the columns with a Bloom filter, in the order of the schema.

    Properties of columns that the schema does not have, or that can have none, are of no consequence: columns are
    dropped and renamed. InvalidArgumentError for a value that cannot be used.
    """
    enabled = {name.removeprefix(ENABLED) for name, value in properties.items() if _is_on(name, value)}
    if not enabled:
        return []
    max_bytes = max(positive_int(properties, MAX_BYTES, _MAX_BYTES_DEFAULT), _BLOCK_BYTES)
    return [
        FilterOption(
            path,
            _rate(properties, f"{RATE}{'.'.join(path)}"),
            _distinct_count(properties, f"{DISTINCT_COUNT}{'.'.join(path)}"),
            max_bytes,
        )
        for path, field_type in _columns(schema.fields, ())
        if ".".join(path) in enabled and _can_have_one(field_type)
    ]


def check_filter_columns(given: Mapping[str, str], schema: Schema) -> None:
    """FM-27: properties of Bloom filters that a caller sets on a table with the schema.

    UnknownColumnError for a column that it does not have; InvalidArgumentError for one that can have no filter, and for
    a rate that is none.
    """
    columns = {".".join(path): field_type for path, field_type in _columns(schema.fields, ())}
    for name in given:
        prefix = next((each for each in (ENABLED, RATE, DISTINCT_COUNT) if name.startswith(each)), None)
        if prefix is None:
            continue
        column = name.removeprefix(prefix)
        if column not in columns and column not in schema.column_names:
            raise UnknownColumnError(column, list(columns), where=f"table property {name}")
        if prefix == ENABLED and _is_on(name, given[name]) and not _can_have_one(columns.get(column)):
            raise InvalidArgumentError(
                f"table property {name}: a Bloom filter is of a column with one value a row, of any type but boolean. "
                "Leave it out."
            )
        if prefix == RATE:
            _rate(given, name)


def arrow_options(options: Sequence[FilterOption], row_count: int) -> dict[str, dict[str, Any]] | None:
    """What Arrow's writer is told for row groups of so many rows; None without filters.

    The number of values is an upper bound: Arrow makes a filter smaller that turns out to hold fewer.
    """
    return {".".join(option.path): _arrow_option(option, row_count) for option in options} or None


def _arrow_option(option: FilterOption, row_count: int) -> dict[str, Any]:
    count = option.distinct_count or max(row_count, 1)
    return {"ndv": min(count, option.most_values), "fpp": option.writer_rate}


@lru_cache
def writer_rate(rate: float) -> float:
    """The rate to ask of Arrow and Parquet's Java library for a filter that has `rate` in truth: they size filters as
    if every block held as many values as the next, and full blocks let more pass than empty ones let fewer.

    >>> round(writer_rate(0.01), 4), round(writer_rate(0.0005), 6)
    (0.0064, 0.000174)
    """
    low, high = 0.0, _VALUES_IN_BLOCK_MAX
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _rate_of_blocks(middle) <= rate else (low, middle)
    return max(float(-math.expm1(-low / _BLOCK_BYTES)) ** _WORDS, _RATE_LEAST)


def _rate_of_blocks(values: float) -> float:
    """The rate of blocks that hold so many values on average, as chance spreads them."""
    counts = np.arange(1, 8 * int(_VALUES_IN_BLOCK_MAX))
    chances = np.exp(counts * math.log(values) - values - np.cumsum(np.log(counts)))
    return float(chances @ (1 - (1 - 1 / _BLOCK_BYTES) ** counts) ** _WORDS)


def _columns(fields: tuple[NestedField, ...], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], IcebergType]]:
    """Columns that have one value a row."""
    for field in fields:
        path = (*above, field.name)
        if isinstance(field.field_type, StructType):
            yield from _columns(field.field_type.fields, path)
        else:
            yield path, field.field_type


def _can_have_one(field_type: IcebergType | None) -> bool:
    return isinstance(field_type, PrimitiveType) and not isinstance(field_type, BooleanType | UnknownType)


def _is_on(name: str, value: str) -> bool:
    return name.startswith(ENABLED) and value.strip().lower() == "true"


def _distinct_count(properties: Mapping[str, str], name: str) -> int | None:
    return positive_int(properties, name, 1) if name in properties else None


def _rate(properties: Mapping[str, str], name: str) -> float:
    text = properties.get(name)
    if text is None:
        return _RATE_DEFAULT
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not 0 < rate < 1:
        raise InvalidArgumentError(f"table property {name} must be a number between 0 and 1, not {text!r}.")
    return rate
