"""Names in the summary of a snapshot that both writers and displays need."""

from __future__ import annotations

from typing import Final

DELETED_ROWS: Final = "tableformat.deleted-rows"
"""Rows that the snapshot deleted (CP-87). Iceberg's `deleted-records` counts the rows of removed data files."""
JOB: Final = "tableformat.job"
"""The maintenance job that made the snapshot, such as `compact` (FM-18)."""
