"""Iceberg's settings of a Spark session, `spark.sql.iceberg.<name>`, which provide defaults for options (SP-64)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from spark_ext.service.registry import Request, method
from spark_ext.service.session import Session
from tableformat.errors import InvalidArgumentError, nearest_hint

_PREFIX: Final = "spark.sql.iceberg."
_SPLIT_SIZE: Final = "read.split-size"
_OPTIONS_OF_WRITES: Final = ("advisory-partition-size", "compression-codec", "compression-level", "distribution-mode")
"""Settings with the same name as the option."""
_SNAPSHOT_PROPERTY: Final = "snapshot-property."
_ELSEWHERE: Final = ("merge-schema", "planning.preserve-data-grouping", _SPLIT_SIZE)
"""Settings that the Java side uses."""
_IDLE: Final = (
    "aggregate-push-down.enabled",
    "async-micro-batch-planning-enabled",
    "check-nullability",
    "check-ordering",
    "compression-strategy",
    "data-planning-mode",
    "delete-planning-mode",
    "executor-cache.delete-files.enabled",
    "executor-cache.enabled",
    "executor-cache.locality.enabled",
    "executor-cache.max-entry-size",
    "executor-cache.max-total-size",
    "executor-cache.timeout",
    "identifier-fields-rely",
    "locality.enabled",
    "read.adaptive-split-size.enabled",
    "read.adaptive-split-size.parallelism",
    "report-column-stats",
    "shred-variants",
    "variant-inference-buffer-size",
    "vectorization.enabled",
)
"""Settings of Iceberg's that have no effect here and affect no rows."""
_KNOWN: Final = (*_OPTIONS_OF_WRITES, f"{_SNAPSHOT_PROPERTY}<name>", *_ELSEWHERE, *_IDLE)
_told: Final[set[str]] = set()
"""Settings for which this process has logged a warning."""
logger = logging.getLogger(__name__)


@method("check_settings")
def check_settings(_: Session, request: Request) -> None:
    """Check the settings before a read. Raises InvalidArgumentError for an invalid value."""
    tell_of_settings(request.arguments["settings"])


def options_of_write(options: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """The options of a write, whose names are case-insensitive, with the session's settings as defaults."""
    tell_of_settings(settings)
    given = {name.casefold() for name in options}
    standing_in = {name: value for name, value in settings.items() if name in _OPTIONS_OF_WRITES}
    standing_in |= options_of_delete(settings)
    return {**options, **{name: value for name, value in standing_in.items() if name.casefold() not in given}}


def options_of_delete(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that apply to a delete without a Spark job: properties for the summary of its snapshot."""
    return {name: value for name, value in settings.items() if name.startswith(_SNAPSHOT_PROPERTY)}


def tell_of_settings(settings: Mapping[str, str]) -> None:
    """Log one line to standard error for each setting without effect."""
    size = settings.get(_SPLIT_SIZE)
    if size is not None and (not size.isdecimal() or int(size) < 1):
        raise InvalidArgumentError(
            f"setting {_PREFIX}{_SPLIT_SIZE} must be a number of bytes, at least 1, not {size!r}."
        )
    for name in settings:
        if name in (*_OPTIONS_OF_WRITES, *_ELSEWHERE) or name.startswith(_SNAPSHOT_PROPERTY) or name in _told:
            continue
        _told.add(name)
        hint = "" if name in _IDLE else nearest_hint(name, _KNOWN)
        logger.warning("setting %s%s has no effect here. This is logged only once.%s", _PREFIX, name, hint)
