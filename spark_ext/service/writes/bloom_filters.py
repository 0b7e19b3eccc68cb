"""Bloom filters of the files that Spark writes, in the form that `FilterOption.java` reads (FM-27)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from tableformat.parquet.bloom_filters.filter_options import FilterOption

_told: Final[set[tuple[str, ...]]] = set()
"""Columns without a filter for which this process has logged a warning."""
logger = logging.getLogger(__name__)


def bloom_filters(options: Iterable[FilterOption]) -> list[dict[str, Any]]:
    """The options for Parquet's Java library.

    It takes columns as text and interprets every dot as a step into a struct, so a column with a dot in its name gets
    no filter. One line is logged to standard error for each such column. Files written from Python have a filter for
    it.
    """
    options = list(options)
    for option in options:
        if _has_dot_in_a_name(option) and option.path not in _told:
            _told.add(option.path)
            logger.warning(
                "column %s gets no Bloom filter from Spark, because Parquet's Java library does not support names "
                "with dots. Rename the column, or rewrite the files with `tableformat compact`. This is logged only "
                "once.",
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
