"""Table properties that this library reads, with their defaults.

The names that Iceberg knows keep Iceberg's spelling and meaning; ours begin with `tableformat.`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tableformat.errors import InvalidArgumentError, UnknownOptionError

KEY_FIELD_IDS: Final = "tableformat.key-field-ids"
"""The key: field ids in key order, comma separated (FM-4). `identifier-field-ids` holds the same set without the
order."""
RANGE_PARTITIONS: Final = "tableformat.range-partitions"
"""Reserved: JSON of non-covering range partitions, bounds by field id."""
CHECK_PREFIX: Final = "tableformat.check."
"""`tableformat.check.<name>`: the condition of a CHECK constraint, in Spark's SQL (CK-1)."""
CHECK_EXPRESSION_PREFIX: Final = "tableformat.check-expression."
"""`tableformat.check-expression.<name>`: the same condition as JSON of an Iceberg expression (CK-1)."""
TRANSACTION_PREFIX: Final = "tableformat.txn."
"""`tableformat.txn.<ref>.<application_id>`: the last batch that the writer committed on the ref."""
TRANSACTION_RETENTION_MS: Final = "tableformat.txn.retention-ms"
"""Age from which the record of a writer's last batch is forgotten when snapshots are expired (MT-4)."""
TRANSACTION_RETENTION_MS_DEFAULT: Final = 7 * 24 * 60 * 60 * 1000
PUBLISH_TARGET_PREFIX: Final = "tableformat.publish-target."
"""`tableformat.publish-target.<branch>`: the branch that publishing `<branch>` moves forward (MT-30)."""

PREFIX_ENCODING: Final = "write.delete.prefix-encoding"
"""How prefix deletes and replacements are written: `range` (default) or `equality`."""
PREFIX_ENCODINGS: Final = ("range", "equality")

TARGET_FILE_SIZE_BYTES: Final = "write.target-file-size-bytes"
TARGET_FILE_SIZE_BYTES_DEFAULT: Final = 512 * 1024 * 1024
ROW_GROUP_LIMIT: Final = "write.parquet.row-group-limit"
ROW_GROUP_LIMIT_DEFAULT: Final = 131_072
COMPRESSION_CODEC: Final = "write.parquet.compression-codec"
COMPRESSION_CODEC_DEFAULT: Final = "zstd"
COMPRESSION_LEVEL: Final = "write.parquet.compression-level"
WRITE_MEMORY_BYTES: Final = "tableformat.write.memory-bytes"
"""Bytes that a writer or a compaction may hold for rows at its peak (MT-63)."""
WRITE_MEMORY_BYTES_DEFAULT: Final = 256 * 1024 * 1024
RANGE_SPAN_BUDGET: Final = "tableformat.scan.range-span-budget"
"""Range delete spans that the planner loads; above it tasks carry the delete files instead."""
RANGE_SPAN_BUDGET_DEFAULT: Final = 1_000_000
PAGE_CHECKSUM_VERIFICATION: Final = "read.parquet.page-checksum-verification"
"""`true`: pages of data files are compared with their checksums when they are read. Those of delete files always are
(DA-11)."""
PAGE_CHECKSUM_VERIFICATION_DEFAULT: Final = "false"
PAGE_CHECKSUM_VERIFICATIONS: Final = (PAGE_CHECKSUM_VERIFICATION_DEFAULT, "true")
OPEN_FILE_COST: Final = "read.split.open-file-cost"
"""Bytes that opening one file is taken to cost as much as reading; compaction weighs files by it."""
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
GC_ENABLED: Final = "gc.enabled"
"""`false` where other tables use the same files: no job may remove any."""
GC_ENABLED_DEFAULT: Final = "true"

_NAMES: Final = (KEY_FIELD_IDS, RANGE_PARTITIONS, TRANSACTION_RETENTION_MS, WRITE_MEMORY_BYTES, RANGE_SPAN_BUDGET)
_PREFIXES: Final = (CHECK_PREFIX, CHECK_EXPRESSION_PREFIX, TRANSACTION_PREFIX, PUBLISH_TARGET_PREFIX)


def checked_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """FM-23: the table properties that a caller sets.

    InvalidArgumentError for a value that is not text, or not one of the property's words; UnknownOptionError for a name
    of ours that does not exist. What other engines' properties mean is theirs to say.
    """
    for name, value in properties.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidArgumentError(
                f"table properties are text: {name!r} is {value!r}. Write {name!r}: {str(value)!r}."
            )
        if name.startswith("tableformat.") and name not in _NAMES and not name.startswith(_PREFIXES):
            raise UnknownOptionError(name, _NAMES, where="the table's properties")
    property_one_of(properties, PREFIX_ENCODING, PREFIX_ENCODINGS)
    property_one_of(properties, PAGE_CHECKSUM_VERIFICATION, PAGE_CHECKSUM_VERIFICATIONS)
    return dict(properties)


def may_remove_files(properties: Mapping[str, str]) -> bool:
    """MT-65: not where other tables may use the files."""
    return properties.get(GC_ENABLED, GC_ENABLED_DEFAULT).lower() != "false"


def positive_int(properties: Mapping[str, str], name: str, default: int) -> int:
    """The property as a whole number above zero."""
    text = properties.get(name)
    if text is None:
        return default
    if not text.strip().isdigit() or int(text) == 0:
        raise InvalidArgumentError(f"table property {name} must be a whole number above 0, not {text!r}.")
    return int(text)


def non_negative_int(properties: Mapping[str, str], name: str, default: int) -> int:
    """The property as a whole number, zero included."""
    text = properties.get(name)
    if text is None:
        return default
    if not text.strip().isdigit():
        raise InvalidArgumentError(f"table property {name} must be a whole number, not {text!r}.")
    return int(text)


def property_one_of(properties: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    """The property as one of the allowed values; the first is the default."""
    value = properties.get(name, allowed[0])
    if value not in allowed:
        raise InvalidArgumentError(f"table property {name} must be one of {', '.join(allowed)}, not {value!r}.")
    return value
