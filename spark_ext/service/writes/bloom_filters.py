"""Bloom filters of the files that Spark writes, as `FilterOption.java` reads them (FM-27)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from tableformat.parquet.bloom_filters.filter_options import FilterOption

_told: Final[set[tuple[str, ...]]] = set()
"""Columns without a filter that were told of by this process."""
logger = logging.getLogger(__name__)


def bloom_filters(options: Iterable[FilterOption]) -> list[dict[str, Any]]:
    """What Parquet's Java library is told.

    It takes columns as text alone, and every dot in it for a step into a struct, so that it knows no column with a dot
    in a name: one line on the process's standard error for each of those, whose files from Python have a filter.
    """
    options = list(options)
    for option in options:
        if _has_dot_in_a_name(option) and option.path not in _told:
            _told.add(option.path)
            logger.warning(
                "column %s gets no Bloom filter from Spark: Parquet's Java library knows no names with dots. "
                "Rename it, or rewrite the files by `tableformat compact`; it is told of once.",
                ".".join(f"`{name}`" for name in option.path),
            )
    return [
        {
            "column": ".".join(option.path),
            "false_positive_rate": option.writer_rate,
            "distinct_count": option.distinct_count,
            "most_values": option.most_values,
            "max_bytes": option.max_bytes,
        }
        for option in options
        if not _has_dot_in_a_name(option)
    ]


def _has_dot_in_a_name(option: FilterOption) -> bool:
    return any("." in name for name in option.path)
