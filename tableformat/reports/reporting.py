"""Who gets the reports of a catalog's tables, in this process."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

from pyiceberg.catalog import Catalog

from tableformat.reports.report import Report

logger = logging.getLogger(__name__)

Reporter: TypeAlias = Callable[[Report], object]
"""Called in the thread of the scan or the commit, after it; what it returns is not looked at."""

_reporters: Final[WeakKeyDictionary[Catalog, Reporter]] = WeakKeyDictionary()


def set_reporter(catalog: Catalog, reporter: Reporter | None) -> None:
    """Scans and commits of tables of the catalog are reported from now on; to nobody with None."""
    if reporter is None:
        _reporters.pop(catalog, None)
    else:
        _reporters[catalog] = reporter


def is_reported(catalog: Catalog) -> bool:
    """Whether somebody wants reports."""
    return catalog in _reporters


def send(catalog: Catalog, report: Report) -> None:
    """Hand the report over. What goes wrong is logged: what is reported has happened."""
    reporter = _reporters.get(catalog)
    if reporter is None:
        return
    try:
        reporter(report)
    except Exception:
        logger.warning("the reporter of catalog %s failed on %r", catalog.name, report, exc_info=True)
