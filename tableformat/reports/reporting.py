"""The reporters of catalogs in this process."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

from pyiceberg.catalog import Catalog

from tableformat.reports.report import Report

logger = logging.getLogger(__name__)

Reporter: TypeAlias = Callable[[Report], object]
"""Called in the thread of the scan or commit, after it. The return value is ignored."""

_reporters: Final[WeakKeyDictionary[Catalog, Reporter]] = WeakKeyDictionary()


def set_reporter(catalog: Catalog, reporter: Reporter | None) -> None:
    """Report scans and commits of the catalog's tables to this reporter; None ends the reports."""
    if reporter is None:
        _reporters.pop(catalog, None)
    else:
        _reporters[catalog] = reporter


def is_reported(catalog: Catalog) -> bool:
    """Whether a reporter is registered."""
    return catalog in _reporters


def send(catalog: Catalog, report: Report) -> None:
    """Pass the report on. Errors of the reporter are logged, because the scan or commit has already happened."""
    reporter = _reporters.get(catalog)
    if reporter is None:
        return
    try:
        reporter(report)
    except Exception:
        logger.warning("the reporter of catalog %s failed on %r", catalog.name, report, exc_info=True)
