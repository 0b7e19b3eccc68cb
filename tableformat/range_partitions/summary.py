"""Entries of snapshot summaries about range partitions."""

from __future__ import annotations

from typing import Final

COVERAGE_BEFORE: Final = "tableformat.range-partitions-before"
"""In the summary of a snapshot whose commit changed the existing ranges: the property before the commit. Empty if the
table had none."""

COVERAGE_DROPPED: Final = "tableformat.range-partitions-dropped"
"""In the summary of a snapshot that dropped ranges: the ranges, as JSON. The snapshot deleted nothing else (RP-25)."""

RETIRED_TAG: Final = "tableformat.retired-tag"
"""In the summary of a snapshot that retired partitions: the tag that keeps them (RP-13)."""

RESTORED_TAG: Final = "tableformat.restored-tag"
"""In the summary of a snapshot that restored partitions: the tag that kept them."""
