"""The table properties that Iceberg defines in the namespaces `write.`, `read.` and `commit.`, and their effect here.

Source: `TableProperties.java` of Apache Iceberg (core, commit 7f879b1 of 2026-08-21) for the names and their values,
and `pyiceberg/table/__init__.py` of PyIceberg 0.12 for the two names that only PyIceberg has. Names that later versions
add go into the tables below, each with its kind of value and its effect here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias


class ValueKind(Enum):
    """The required text form of a value."""

    POSITIVE = "a whole number above 0"
    WHOLE = "a whole number"
    INTEGER = "a whole number, with a sign or without"
    NUMBER = "a number"
    BOOLEAN = "true or false"
    TEXT = "any text"
    METRICS_MODE = "none, counts, truncate(n) or full"


METRICS_MODE: Final = re.compile(r"none|counts|full|truncate\(0*(?P<width>[1-9]\d{0,8})\)")
"""A metrics mode in lower case; `width` is in code points or bytes."""
Values: TypeAlias = ValueKind | tuple[str, ...]
"""A kind of value, or the allowed words, ignoring case."""


class Effect(Enum):
    """The effect of a property in this library."""

    HONOURED = "honoured"
    NONE = "accepted without effect"


@dataclass(frozen=True, slots=True)
class IcebergProperty:
    """One property that Iceberg defines."""

    name: str
    """The name. A name that ends with a dot is a prefix: the name of a column follows it."""
    values: Values
    effect: Effect = Effect.NONE
    always: str | None = None
    """The value that matches the behaviour of this library. Setting it requires nothing that the library does not do.
    """


_P, _W, _I, _N, _B, _T, _M = (
    ValueKind.POSITIVE,
    ValueKind.WHOLE,
    ValueKind.INTEGER,
    ValueKind.NUMBER,
    ValueKind.BOOLEAN,
    ValueKind.TEXT,
    ValueKind.METRICS_MODE,
)
PARQUET_CODECS: Final = ("zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed")
METADATA_CODECS: Final = ("none", "gzip")
DISTRIBUTION_MODES: Final = ("none", "hash", "range")
_FORMATS: Final = ("parquet", "avro", "orc")
_PAGE_VERSIONS: Final = ("v1", "v2")
_ROW_LEVEL_MODES: Final = ("copy-on-write", "merge-on-read")
_ISOLATION_LEVELS: Final = ("serializable", "snapshot")
_PLANNING_MODES: Final = ("auto", "local", "distributed")

_HONOURED: Final[dict[str, Values]] = {
    "commit.manifest-merge.enabled": _B,
    "commit.manifest.min-count-to-merge": _P,
    "commit.manifest.target-size-bytes": _P,
    "commit.retry.max-wait-ms": _W,
    "commit.retry.min-wait-ms": _W,
    "commit.retry.num-retries": _W,
    "commit.retry.total-timeout-ms": _P,
    "commit.status-check.max-wait-ms": _W,
    "commit.status-check.min-wait-ms": _W,
    "commit.status-check.num-retries": _P,
    "read.split.open-file-cost": _P,
    "read.split.target-size": _P,
    "write.data.path": _T,
    "write.delete.distribution-mode": DISTRIBUTION_MODES,
    "write.delete.isolation-level": _ISOLATION_LEVELS,
    "write.delete.mode": _ROW_LEVEL_MODES,
    "write.distribution-mode": DISTRIBUTION_MODES,
    "write.folder-storage.path": _T,
    "write.merge.distribution-mode": DISTRIBUTION_MODES,
    "write.merge.isolation-level": _ISOLATION_LEVELS,
    "write.merge.mode": _ROW_LEVEL_MODES,
    "write.metadata.compression-codec": METADATA_CODECS,
    "write.metadata.delete-after-commit.enabled": _B,
    "write.metadata.metrics.column.": _M,
    "write.metadata.metrics.default": _M,
    "write.metadata.metrics.max-inferred-column-defaults": _W,
    "write.metadata.path": _T,
    "write.metadata.previous-versions-max": _P,
    "write.object-storage.enabled": _B,
    "write.object-storage.partitioned-paths": _B,
    "write.object-storage.path": _T,
    "write.parquet.bloom-filter-enabled.column.": _B,
    "write.parquet.bloom-filter-fpp.column.": _N,
    "write.parquet.bloom-filter-max-bytes": _P,
    "write.parquet.bloom-filter-ndv.column.": _P,
    "write.parquet.compression-codec": PARQUET_CODECS,
    "write.parquet.compression-level": _I,
    "write.parquet.row-group-limit": _P,
    "write.py-location-provider.impl": _T,
    "write.spark.advisory-partition-size-bytes": _P,
    "write.spark.accept-any-schema": _B,
    "write.spark.auto-schema-evolution.enabled": _B,
    "write.target-file-size-bytes": _P,
    "write.update.distribution-mode": DISTRIBUTION_MODES,
    "write.update.isolation-level": _ISOLATION_LEVELS,
    "write.update.mode": _ROW_LEVEL_MODES,
    "write.wap.enabled": _B,
}
_WITHOUT_EFFECT: Final[dict[str, Values]] = {
    "commit.status-check.total-timeout-ms": _P,
    "read.data-planning-mode": _PLANNING_MODES,
    "read.delete-planning-mode": _PLANNING_MODES,
    "read.orc.vectorization.batch-size": _P,
    "read.orc.vectorization.enabled": _B,
    "read.parquet.vectorization.batch-size": _P,
    "read.parquet.vectorization.enabled": _B,
    "read.split.adaptive-size.enabled": _B,
    "read.split.metadata-target-size": _P,
    "read.split.planning-lookback": _P,
    "write.avro.compression-codec": _T,
    "write.avro.compression-level": _I,
    "write.delete.avro.compression-codec": _T,
    "write.delete.avro.compression-level": _I,
    "write.delete.format.default": _FORMATS,
    "write.delete.granularity": ("file", "partition"),
    "write.delete.orc.block-size-bytes": _P,
    "write.delete.orc.compression-codec": _T,
    "write.delete.orc.compression-strategy": ("speed", "compression"),
    "write.delete.orc.stripe-size-bytes": _P,
    "write.delete.orc.vectorized.batch-size": _P,
    "write.delete.parquet.compression-codec": PARQUET_CODECS,
    "write.delete.parquet.compression-level": _I,
    "write.delete.parquet.dict-size-bytes": _P,
    "write.delete.parquet.page-row-limit": _P,
    "write.delete.parquet.page-size-bytes": _P,
    "write.delete.parquet.page-version": _PAGE_VERSIONS,
    "write.delete.parquet.row-group-check-max-record-count": _P,
    "write.delete.parquet.row-group-check-min-record-count": _P,
    "write.delete.parquet.row-group-size-bytes": _P,
    "write.delete.target-file-size-bytes": _P,
    "write.format.default": _FORMATS,
    "write.location-provider.impl": _T,
    "write.manifest.compression-codec": _T,
    "write.manifest.compression-level": _I,
    "write.orc.block-size-bytes": _P,
    "write.orc.bloom.filter.columns": _T,
    "write.orc.bloom.filter.fpp": _N,
    "write.orc.compression-codec": _T,
    "write.orc.compression-strategy": ("speed", "compression"),
    "write.orc.stripe-size-bytes": _P,
    "write.orc.vectorized.batch-size": _P,
    "write.parquet.bloom-filter-adaptive-enabled": _B,
    "write.parquet.dict-encoding-enabled.column.": _B,
    "write.parquet.dict-size-bytes": _P,
    "write.parquet.page-row-limit": _P,
    "write.parquet.page-size-bytes": _P,
    "write.parquet.page-version": _PAGE_VERSIONS,
    "write.parquet.row-group-check-max-record-count": _P,
    "write.parquet.row-group-check-min-record-count": _P,
    "write.parquet.row-group-size-bytes": _P,
    "write.parquet.row-group-size-track-uncompressed": _B,
    "write.parquet.shred-variants": _B,
    "write.parquet.stats-enabled.column.": _B,
    "write.parquet.variant-inference-buffer-size": _P,
    "write.spark.fanout.enabled": _B,
    "write.summary.partition-limit": _W,
    "write.upsert.enabled": _B,
}
_ALWAYS: Final = {
    "write.delete.format.default": "parquet",
    "write.delete.parquet.page-version": "v1",
    "write.format.default": "parquet",
    "write.parquet.bloom-filter-adaptive-enabled": "true",
    "write.parquet.page-version": "v1",
    "write.upsert.enabled": "false",
}

ICEBERG_PROPERTIES: Final = {
    **{name: IcebergProperty(name, values, Effect.HONOURED) for name, values in _HONOURED.items()},
    **{name: IcebergProperty(name, values, always=_ALWAYS.get(name)) for name, values in _WITHOUT_EFFECT.items()},
}
"""All properties, by name or by prefix."""
_PREFIXES: Final = tuple(name for name in ICEBERG_PROPERTIES if name.endswith("."))


def iceberg_property(name: str) -> IcebergProperty | None:
    """The property of that name, or of its prefix before a column; None if Iceberg does not define it."""
    prefix = next((each for each in _PREFIXES if name.startswith(each) and name != each), name)
    return None if name.endswith(".") else ICEBERG_PROPERTIES.get(prefix)
