"""Table properties that this library reads, with their defaults.

Properties of Iceberg keep their names and meaning (`iceberg_properties`). Our properties begin with `tableformat.`.
"""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyiceberg.table.name_mapping import NameMapping, parse_mapping_from_json

from tableformat.arguments import check_texts
from tableformat.errors import (
    InvalidArgumentError,
    PropertyWithoutEffectWarning,
    UnknownOptionError,
    UnsupportedFeatureError,
)
from tableformat.iceberg_properties import ICEBERG_PROPERTIES, METRICS_MODE, Effect, ValueKind, Values, iceberg_property

KEY_FIELD_IDS: Final = "tableformat.key-field-ids"
"""The key: field ids in key order, comma separated (FM-4). `identifier-field-ids` has the same set without an order."""
RANGE_PARTITIONS: Final = "tableformat.range-partitions"
"""The ranges of the key space that exist: JSON with bounds by field id (RP-1)."""
RETAIN: Final = "tableformat.retain"
"""How long rows are kept, such as `ts: 30 days` (MT-107)."""
RETIRED_PREFIX: Final = "tableformat.retired."
"""`tableformat.retired.<tag>`: the range partitions that the tag keeps (RP-13)."""
CHECK_PREFIX: Final = "tableformat.check."
"""`tableformat.check.<name>`: the condition of a CHECK constraint, in Spark's SQL (CK-1)."""
CHECK_EXPRESSION_PREFIX: Final = "tableformat.check-expression."
"""`tableformat.check-expression.<name>`: the same condition as JSON of an Iceberg expression (CK-1)."""
ORDER_COLUMN: Final = "tableformat.order-column"
"""The column by which a write of an older row or message is stale (CP-69)."""
TRANSACTION_PREFIX: Final = "tableformat.txn."
"""`tableformat.txn.<ref>.<application_id>`: the last batch that the writer committed on the ref."""
TRANSACTION_RETENTION_MS: Final = "tableformat.txn.retention-ms"
"""The age from which the last batch of a writer is forgotten when snapshots expire (MT-4)."""
TRANSACTION_RETENTION_MS_DEFAULT: Final = 7 * 24 * 60 * 60 * 1000
PUBLISH_TARGET_PREFIX: Final = "tableformat.publish-target."
"""`tableformat.publish-target.<branch>`: the branch that moves forward when `<branch>` is published (MT-30)."""

PREFIX_ENCODING: Final = "write.delete.prefix-encoding"
"""How prefix deletes and replacements are written: `range` (default) or `equality`."""
PREFIX_ENCODINGS: Final = ("range", "equality")

SERIALIZABLE: Final = "serializable"
SNAPSHOT: Final = "snapshot"
ISOLATION_LEVELS: Final = (SERIALIZABLE, SNAPSHOT)
"""Values of `write.{delete,update,merge}.isolation-level`: whether concurrently added rows that the statement would
have read are a conflict (SP-20)."""

MERGE_ON_READ: Final = "merge-on-read"
COPY_ON_WRITE: Final = "copy-on-write"
_ROW_LEVEL_MODES: Final = (MERGE_ON_READ, COPY_ON_WRITE)
BLIND_DELETES: Final = "write.delete.blind"
"""The delete files that a blind delete may leave in the table (SP-22). `range`: range and equality deletes. `equality`:
only equality deletes. `off`: neither, so that every engine can read every snapshot."""
BLIND_DELETES_DEFAULT: Final = "range"
BLIND_OFF: Final = "off"
BLIND_DELETES_VALUES: Final = (BLIND_DELETES_DEFAULT, "equality", BLIND_OFF)

TARGET_FILE_SIZE_BYTES: Final = "write.target-file-size-bytes"
TARGET_FILE_SIZE_BYTES_DEFAULT: Final = 512 * 1024 * 1024
ROW_GROUP_LIMIT: Final = "write.parquet.row-group-limit"
ROW_GROUP_LIMIT_DEFAULT: Final = 131_072
COMPRESSION_CODEC: Final = "write.parquet.compression-codec"
COMPRESSION_CODEC_DEFAULT: Final = "zstd"
COMPRESSION_LEVEL: Final = "write.parquet.compression-level"
WRITE_MEMORY_BYTES: Final = "tableformat.write.memory-bytes"
"""The peak number of bytes that a writer or a compaction may use for rows (MT-63)."""
WRITE_MEMORY_BYTES_DEFAULT: Final = 256 * 1024 * 1024
WRITE_SORT: Final = "tableformat.write.sort"
"""FM-28: `none` keeps the rows of new data files in the order of the input."""
WRITE_SORT_DEFAULT: Final = "key"
WRITE_SORTS: Final = (WRITE_SORT_DEFAULT, "none")
WRITE_SYNC: Final = "tableformat.write.sync"
"""`commit`: local files are flushed to the disk before the commit returns, so that they survive a power failure.
`none`: the operating system decides when to write them."""
WRITE_SYNC_DEFAULT: Final = "none"
WRITE_SYNCS: Final = (WRITE_SYNC_DEFAULT, "commit")
RANGE_SPAN_BUDGET: Final = "tableformat.scan.range-span-budget"
"""The number of range delete spans that the planner loads. Above it, tasks contain the delete files instead."""
RANGE_SPAN_BUDGET_DEFAULT: Final = 1_000_000
PAGE_CHECKSUM_VERIFICATION: Final = "read.parquet.page-checksum-verification"
"""`true`: pages of data files are compared with their checksums when they are read. Pages of delete files always are
(DA-11)."""
PAGE_CHECKSUM_VERIFICATION_DEFAULT: Final = "false"
PAGE_CHECKSUM_VERIFICATIONS: Final = (PAGE_CHECKSUM_VERIFICATION_DEFAULT, "true")
INFLATED_BYTES_MAX: Final = "tableformat.read.inflated-bytes-max"
"""An option of the catalog, not of a table: the maximum size of a decompressed metadata file (FM-32)."""
INFLATED_BYTES_MAX_DEFAULT: Final = 512 * 1024 * 1024
OPEN_FILE_COST: Final = "read.split.open-file-cost"
"""The cost of opening a file, in bytes read. Compaction uses it to weigh files."""
OPEN_FILE_COST_DEFAULT: Final = 4 * 1024 * 1024

COMMIT_RETRIES: Final = "commit.retry.num-retries"
COMMIT_RETRIES_DEFAULT: Final = 20
COMMIT_MIN_WAIT_MS: Final = "commit.retry.min-wait-ms"
COMMIT_MIN_WAIT_MS_DEFAULT: Final = 20
COMMIT_MAX_WAIT_MS: Final = "commit.retry.max-wait-ms"
COMMIT_MAX_WAIT_MS_DEFAULT: Final = 5_000
COMMIT_TOTAL_TIMEOUT_MS: Final = "commit.retry.total-timeout-ms"
COMMIT_TOTAL_TIMEOUT_MS_DEFAULT: Final = 1_800_000
MANIFEST_MIN_COUNT_TO_MERGE: Final = "commit.manifest.min-count-to-merge"
MANIFEST_MIN_COUNT_TO_MERGE_DEFAULT: Final = 100
MANIFEST_TARGET_SIZE_BYTES: Final = "commit.manifest.target-size-bytes"
MANIFEST_TARGET_SIZE_BYTES_DEFAULT: Final = 8 * 1024 * 1024

MAX_SNAPSHOT_AGE_MS: Final = "history.expire.max-snapshot-age-ms"
MAX_SNAPSHOT_AGE_MS_DEFAULT: Final = 5 * 24 * 60 * 60 * 1000
MIN_SNAPSHOTS_TO_KEEP: Final = "history.expire.min-snapshots-to-keep"
MIN_SNAPSHOTS_TO_KEEP_DEFAULT: Final = 1
MAX_REF_AGE_MS: Final = "history.expire.max-ref-age-ms"
MAX_SNAPSHOT_AGE_MS_WITH_UPKEEP: Final = 24 * 60 * 60 * 1000
"""MT-87: the default for a table with upkeep, which commits often."""
CONSUMER_PREFIX: Final = "tableformat.consumer."
"""Followed by the name of a consumer of the change feed: its position (CF-11)."""
CONSUMERS_MAX_AGE_MS: Final = "tableformat.consumers.max-age-ms"
"""The maximum age of the oldest unread snapshot of a consumer before expiry removes it (CF-11)."""
CONSUMERS_MAX_AGE_MS_DEFAULT: Final = 7 * 24 * 60 * 60 * 1000
MAX_SNAPSHOTS: Final = "tableformat.history.max-snapshots"
"""The number of snapshots of a branch that expiry keeps, independent of their age (MT-1)."""
STAGED_MAX_AGE_MS: Final = "tableformat.serve.staged-max-age-ms"
"""How long a staged conversion stays after its source was superseded, for readers that have begun to read it (SV-8)."""
STAGED_MAX_AGE_MS_DEFAULT: Final = 60 * 60 * 1000
SERVE_DELETE_FORMAT: Final = "tableformat.serve.delete-format"
"""The row deletes that the clients of a server can read (SV-15)."""
SERVE_DELETE_FORMAT_DEFAULT: Final = "any"
SERVE_DELETE_FORMATS: Final = (SERVE_DELETE_FORMAT_DEFAULT, "position-deletes")
UPKEEP: Final = "tableformat.upkeep"
"""The processes that maintain the table while it is written (MT-83)."""
UPKEEP_DEFAULT: Final = "off"
UPKEEP_MODES: Final = (UPKEEP_DEFAULT, "writer", "background")
UPKEEP_FILES_PER_LEVEL: Final = "tableformat.upkeep.files-per-level"
UPKEEP_FILES_PER_LEVEL_DEFAULT: Final = 12
UPKEEP_MAX_BYTES: Final = "tableformat.upkeep.max-bytes"
UPKEEP_MAX_BYTES_DEFAULT: Final = 4 * 1024 * 1024 * 1024
UPKEEP_MAX_SECONDS: Final = "tableformat.upkeep.max-seconds"
UPKEEP_MAX_SECONDS_DEFAULT: Final = 300
UPKEEP_WRITE_AMPLIFICATION: Final = "tableformat.upkeep.write-amplification"
UPKEEP_WRITE_AMPLIFICATION_DEFAULT: Final = 4.0
MAX_SNAPSHOTS_WITH_UPKEEP: Final = 10_000
"""MT-87: the default for a table with upkeep. Every commit writes the list of snapshots."""
GC_ENABLED: Final = "gc.enabled"
"""`false` if other tables use the same files: no job may remove any file."""
GC_ENABLED_DEFAULT: Final = "true"
NAME_MAPPING: Final = "schema.name-mapping.default"
"""JSON of field ids by name, for data files without field ids."""

_OURS: Final[dict[str, Values]] = {
    KEY_FIELD_IDS: ValueKind.TEXT,
    RANGE_PARTITIONS: ValueKind.TEXT,
    RETAIN: ValueKind.TEXT,
    ORDER_COLUMN: ValueKind.TEXT,
    TRANSACTION_RETENTION_MS: ValueKind.WHOLE,
    WRITE_MEMORY_BYTES: ValueKind.POSITIVE,
    WRITE_SORT: WRITE_SORTS,
    WRITE_SYNC: WRITE_SYNCS,
    RANGE_SPAN_BUDGET: ValueKind.POSITIVE,
    PREFIX_ENCODING: PREFIX_ENCODINGS,
    BLIND_DELETES: BLIND_DELETES_VALUES,
    PAGE_CHECKSUM_VERIFICATION: PAGE_CHECKSUM_VERIFICATIONS,
    MAX_SNAPSHOTS: ValueKind.POSITIVE,
    CONSUMERS_MAX_AGE_MS: ValueKind.POSITIVE,
    STAGED_MAX_AGE_MS: ValueKind.WHOLE,
    SERVE_DELETE_FORMAT: SERVE_DELETE_FORMATS,
    UPKEEP: UPKEEP_MODES,
    UPKEEP_FILES_PER_LEVEL: ValueKind.POSITIVE,
    UPKEEP_MAX_BYTES: ValueKind.POSITIVE,
    UPKEEP_MAX_SECONDS: ValueKind.POSITIVE,
    UPKEEP_WRITE_AMPLIFICATION: ValueKind.NUMBER,
}
_LEAST: Final = {UPKEEP_FILES_PER_LEVEL: 2, UPKEEP_WRITE_AMPLIFICATION: 1}
"""Lower limits: a level of one file would be merged forever, and a smaller file cannot be written."""
_ELSEWHERE: Final[dict[str, Values]] = {
    MAX_SNAPSHOT_AGE_MS: ValueKind.POSITIVE,
    MIN_SNAPSHOTS_TO_KEEP: ValueKind.POSITIVE,
    MAX_REF_AGE_MS: ValueKind.POSITIVE,
    GC_ENABLED: ValueKind.BOOLEAN,
}
"""Properties of Iceberg outside of the namespaces below that are read here."""
_PREFIXES: Final = (
    RETIRED_PREFIX,
    CHECK_PREFIX,
    CHECK_EXPRESSION_PREFIX,
    TRANSACTION_PREFIX,
    PUBLISH_TARGET_PREFIX,
    CONSUMER_PREFIX,
)
_NAMESPACES: Final = ("write.", "read.", "commit.", "tableformat.")
"""Namespaces with a closed list of names. An unknown name in them is a typing mistake."""
_UNKEPT: Final = ("encryption.",)
"""Namespaces whose properties promise features that do not exist here."""
_RESERVED: Final = frozenset(
    {
        "current-schema",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "default-partition-spec",
        "default-sort-order",
        "identifier-fields",
        "snapshot-count",
        "sort-order",
        "uuid",
    }
)
"""`TableProperties.RESERVED_PROPERTIES` of Iceberg without `format-version`, which can be set (FM-19), and the names
that Iceberg's Spark catalog displays as properties."""
_FORMS: Final = {ValueKind.BOOLEAN: re.compile("true|false"), ValueKind.METRICS_MODE: METRICS_MODE}
"""Properties whose values are in lower case."""
_INT64_MAX: Final = 2**63 - 1


def checked_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """FM-23, FM-25: the table properties that a caller sets.

    Raises InvalidArgumentError for a value that is not text or cannot be parsed. Raises UnknownOptionError, with the
    nearest name, for an unknown name in the namespaces of Iceberg and of this library. A PropertyWithoutEffectWarning
    lists properties of Iceberg that have no effect here. Names in other namespaces are not checked.
    """
    check_texts(properties, "table properties")
    for name, value in properties.items():
        _refuse_promise(name)
        values = _values_of(name)
        if values is not None and not _parses(value, values):
            raise InvalidArgumentError(f"table property {name} must be {_told(values)}, not {value!r}.")
    name_mapping(properties)
    check_least(properties)
    _warn_of_no_effect(properties)
    return dict(properties)


def _refuse_promise(name: str) -> None:
    """FM-25: raises UnsupportedFeatureError for a property that promises a missing feature, and InvalidArgumentError
    for a name that Iceberg reserves for the contents of the metadata."""
    if name.startswith(_UNKEPT):
        raise UnsupportedFeatureError(
            f"table property {name} is not supported, because this library does not encrypt files. Nothing was "
            "changed. Remove the property, and encrypt in the storage layer."
        )
    if name in _RESERVED:
        raise InvalidArgumentError(
            f"table property {name} is reserved: its value comes from the table metadata and cannot be set as a "
            "property. Remove it."
        )


def check_least(properties: Mapping[str, str]) -> None:
    """Raise InvalidArgumentError for a number below the lower limit."""
    for name, least in _LEAST.items():
        value = properties.get(name)
        if value is not None and _is_number(value) and float(value) < least:
            raise InvalidArgumentError(f"table property {name} must be at least {least}, not {value!r}.")


def _values_of(name: str) -> Values | None:
    """The valid values of the property; None if all are valid."""
    known = iceberg_property(name)
    values = known.values if known is not None else _OURS.get(name, _ELSEWHERE.get(name))
    if values is None and name.startswith(_NAMESPACES):
        if name.startswith(_PREFIXES) and name not in _PREFIXES:
            return None
        raise UnknownOptionError(name, (*_OURS, *ICEBERG_PROPERTIES), where="the table's properties")
    return values


def _parses(value: str, values: Values) -> bool:
    if isinstance(values, tuple):
        return value.lower() in values
    match values:
        case ValueKind.TEXT:
            return True
        case ValueKind.BOOLEAN | ValueKind.METRICS_MODE:
            return _FORMS[values].fullmatch(value.lower()) is not None
        case ValueKind.INTEGER:
            return _whole(value.strip().removeprefix("-")) is not None
        case ValueKind.NUMBER:
            return _is_number(value)
        case ValueKind.WHOLE | ValueKind.POSITIVE:
            number = _whole(value)
            return number is not None and (number > 0 or values is ValueKind.WHOLE)


def _told(values: Values) -> str:
    return f"one of {', '.join(values)}" if isinstance(values, tuple) else values.value


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _whole(text: str) -> int | None:
    """The number in decimal digits; None for other text, and for a number of more than 64 bits."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= len(str(_INT64_MAX))):
        return None
    return number if (number := int(digits)) <= _INT64_MAX else None


def _warn_of_no_effect(properties: Mapping[str, str]) -> None:
    """FM-25: one warning for all properties."""
    idle = [
        name
        for name, value in properties.items()
        if (known := iceberg_property(name)) is not None
        and known.effect is Effect.NONE
        and value.lower() != known.always
    ]
    if idle:
        warnings.warn(
            f"table properties without effect in this library: {', '.join(idle)}. They are stored for other engines.",
            PropertyWithoutEffectWarning,
            stacklevel=_frames_of_library(),
        )


def _frames_of_library() -> int:
    """The stack level of the first caller outside of this package, who set the property."""
    package = str(Path(__file__).parent)
    frame, level = sys._getframe(2), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    return level


def max_snapshot_age_ms(properties: Mapping[str, str]) -> int:
    """MT-1, MT-87: the age from which a snapshot may expire."""
    default = MAX_SNAPSHOT_AGE_MS_WITH_UPKEEP if _has_upkeep(properties) else MAX_SNAPSHOT_AGE_MS_DEFAULT
    return positive_int(properties, MAX_SNAPSHOT_AGE_MS, default)


def staged_max_age_ms(properties: Mapping[str, str]) -> int:
    """SV-8: how long a staged conversion stays after its source was superseded."""
    return non_negative_int(properties, STAGED_MAX_AGE_MS, STAGED_MAX_AGE_MS_DEFAULT)


def serve_delete_format(properties: Mapping[str, str], default: str) -> str:
    """SV-15: the row deletes that the clients of a server can read, by default those of the server."""
    if SERVE_DELETE_FORMAT not in properties:
        return default
    return property_one_of(properties, SERVE_DELETE_FORMAT, SERVE_DELETE_FORMATS)


def max_snapshots(properties: Mapping[str, str]) -> int | None:
    """MT-1, MT-87: the number of snapshots of a branch from which older ones may expire. None means no limit."""
    if MAX_SNAPSHOTS in properties or _has_upkeep(properties):
        return positive_int(properties, MAX_SNAPSHOTS, MAX_SNAPSHOTS_WITH_UPKEEP)
    return None


def _has_upkeep(properties: Mapping[str, str]) -> bool:
    return properties.get(UPKEEP, UPKEEP_DEFAULT).lower() not in (UPKEEP_DEFAULT, "")


def name_mapping(properties: Mapping[str, str]) -> NameMapping | None:
    """The field ids, by name, of data files without field ids; None if the table has no name mapping.

    Raises InvalidArgumentError for text that is not a name mapping.
    """
    text = properties.get(NAME_MAPPING)
    if text is None:
        return None
    try:
        return parse_mapping_from_json(text)
    except ValueError as error:
        raise InvalidArgumentError(
            f"table property {NAME_MAPPING} must be a name mapping in JSON, not {text!r:.60}."
        ) from error


def may_remove_files(properties: Mapping[str, str]) -> bool:
    """MT-65: whether files may be removed; false if other tables may use them."""
    return properties.get(GC_ENABLED, GC_ENABLED_DEFAULT).lower() != "false"


def is_synced(properties: Mapping[str, str]) -> bool:
    """Whether a commit to the table survives a power cut as soon as it has returned (`tableformat.write.sync`)."""
    return property_one_of(properties, WRITE_SYNC, WRITE_SYNCS) == "commit"


def inflated_bytes_max(options: Mapping[str, str]) -> int:
    """FM-32: the limit in the options of the FileIO."""
    return positive_int(options, INFLATED_BYTES_MAX, INFLATED_BYTES_MAX_DEFAULT)


def options_of_table(properties: Mapping[str, str]) -> dict[str, str]:
    """FM-32: the properties of a table as options of the FileIO. A table cannot set its own limit."""
    return {name: value for name, value in properties.items() if name != INFLATED_BYTES_MAX}


def row_level_mode(properties: Mapping[str, str], statement: str) -> str:
    """SP-21: the way in which a "delete", "update" or "merge" deletes rows of a file: "merge-on-read" or
    "copy-on-write"."""
    return property_one_of(properties, f"write.{statement}.mode", _ROW_LEVEL_MODES)


def copies_rows_on_write(properties: Mapping[str, str]) -> bool:
    """SP-21: whether some statement writes no delete file, and instead rewrites the remaining rows of a file."""
    return any(row_level_mode(properties, each) == COPY_ON_WRITE for each in ("delete", "update", "merge"))


def blind_deletes(properties: Mapping[str, str]) -> str:
    """SP-22: the delete files that blind deletes may leave, one of BLIND_DELETES_VALUES. If deletes rewrite files
    (copy-on-write), the default is `off`."""
    if BLIND_DELETES not in properties and row_level_mode(properties, "delete") == COPY_ON_WRITE:
        return BLIND_OFF
    return property_one_of(properties, BLIND_DELETES, BLIND_DELETES_VALUES)


def positive_int(properties: Mapping[str, str], name: str, default: int) -> int:
    """The property as a whole number greater than zero."""
    text = properties.get(name)
    if text is None:
        return default
    number = _whole(text)
    if not number:
        raise InvalidArgumentError(f"table property {name} must be a whole number above 0, not {text!r}.")
    return number


def non_negative_int(properties: Mapping[str, str], name: str, default: int) -> int:
    """The property as a whole number, zero or greater."""
    text = properties.get(name)
    if text is None:
        return default
    number = _whole(text)
    if number is None:
        raise InvalidArgumentError(f"table property {name} must be a whole number, not {text!r}.")
    return number


def positive_number(properties: Mapping[str, str], name: str, default: float) -> float:
    """The property as a number greater than zero."""
    text = properties.get(name)
    if text is None:
        return default
    if not _is_number(text) or float(text) <= 0:
        raise InvalidArgumentError(f"table property {name} must be a number above 0, not {text!r}.")
    return float(text)


def property_one_of(properties: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    """The property as one of the allowed values; the first is the default."""
    value = properties.get(name, allowed[0]).lower()
    if value not in allowed:
        raise InvalidArgumentError(f"table property {name} must be one of {', '.join(allowed)}, not {value!r}.")
    return value
