"""The Bloom filters that writers of a table create, from its properties.

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
"""The number of bits in each word."""
_WORDS: Final = 8
_VALUES_IN_BLOCK_MAX: Final = 512.0
_HALVINGS: Final = 50
_RATE_LEAST: Final = 1e-12


@dataclass(frozen=True, slots=True)
class FilterOption:
    """A column with a filter in each row group."""

    path: tuple[str, ...]
    """Names from the top-level column to the field."""
    false_positive_rate: float
    distinct_count: int | None
    """The expected number of values; None means the number of rows."""
    max_bytes: int

    @property
    def writer_rate(self) -> float:
        """The false-positive rate to configure in writers."""
        return writer_rate(self.false_positive_rate)

    @property
    def most_values(self) -> int:
        """The number of values for which a filter with this rate has at most `max_bytes`. Sizes are powers of two."""
        bits = 8 * (1 << self.max_bytes.bit_length() - 1)
        return max(1, int(-bits * math.log1p(-(self.writer_rate ** (1 / 8))) / 8))


def filter_options(properties: Mapping[str, str], schema: Schema) -> list[FilterOption]:
    """FM-27: the columns with a Bloom filter, in the order of the schema.

    Properties of columns that do not exist, or cannot have a filter, have no effect, because columns are dropped and
    renamed. Raises InvalidArgumentError for an invalid value.
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
    """FM-27: checks Bloom filter properties that a caller sets.

    Raises UnknownColumnError for a column that does not exist, InvalidArgumentError for a column that cannot have a
    filter and for an invalid rate.
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
                f"table property {name}: Bloom filters are supported only for columns with one value per row, of any "
                "type except boolean. Remove the property."
            )
        if prefix == RATE:
            _rate(given, name)


def arrow_options(options: Sequence[FilterOption], row_count: int) -> dict[str, dict[str, Any]] | None:
    """The options of Arrow's writer for row groups with this number of rows; None without filters.

    The number of values is an upper bound: Arrow makes a filter smaller if it holds fewer values.
    """
    return {".".join(option.path): _arrow_option(option, row_count) for option in options} or None


def _arrow_option(option: FilterOption, row_count: int) -> dict[str, Any]:
    count = option.distinct_count or max(row_count, 1)
    return {"ndv": min(count, option.most_values), "fpp": option.writer_rate}


@lru_cache
def writer_rate(rate: float) -> float:
    """The rate to request from Arrow and Parquet's Java library for a filter with the actual rate `rate`. They assume
    that all blocks hold the same number of values, but full blocks add more false positives than empty blocks save.

    >>> round(writer_rate(0.01), 4), round(writer_rate(0.0005), 6)
    (0.0064, 0.000174)
    """
    low, high = 0.0, _VALUES_IN_BLOCK_MAX
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _rate_of_blocks(middle) <= rate else (low, middle)
    return max(float(-math.expm1(-low / _BLOCK_BYTES)) ** _WORDS, _RATE_LEAST)


def _rate_of_blocks(values: float) -> float:
    """The rate of blocks with this average number of randomly distributed values."""
    counts = np.arange(1, 8 * int(_VALUES_IN_BLOCK_MAX))
    chances = np.exp(counts * math.log(values) - values - np.cumsum(np.log(counts)))
    return float(chances @ (1 - (1 - 1 / _BLOCK_BYTES) ** counts) ** _WORDS)


def _columns(fields: tuple[NestedField, ...], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], IcebergType]]:
    """Columns with one value for each row."""
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
