"""`WriteContext`: what a writer needs of its table, as plain data that can be sent to executors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote_plus

from pyiceberg.io import FileIO
from pyiceberg.partitioning import PartitionKey, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.locations import LocationProvider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Record

from tableformat.cached_property import cached_property
from tableformat.errors import InvalidArgumentError
from tableformat.keys.table_key import key_field_ids
from tableformat.metadata.partition_text import human_text
from tableformat.metadata.row_lineage import check_has_row_lineage, schema_with_row_lineage
from tableformat.parquet.bloom_filters.filter_options import FilterOption, filter_options
from tableformat.parquet.metrics_modes import MetricsMode, metrics_modes
from tableformat.properties import (
    ROW_GROUP_LIMIT,
    ROW_GROUP_LIMIT_DEFAULT,
    TARGET_FILE_SIZE_BYTES,
    TARGET_FILE_SIZE_BYTES_DEFAULT,
    WRITE_MEMORY_BYTES,
    WRITE_MEMORY_BYTES_DEFAULT,
    WRITE_SORT,
    WRITE_SORTS,
    positive_int,
    property_one_of,
)
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.property_text import range_partitions_of
from tableformat.storage.location_provider import location_provider


@dataclass(frozen=True, kw_only=True)
class WriteContext:
    """One table for writers, pinned to one version of its metadata. Can be pickled with PyIceberg's own FileIOs."""

    schema: Schema
    """The table's current schema, in which rows are written."""
    spec: PartitionSpec
    """The default partition spec, under which data files are written."""
    specs: Mapping[int, PartitionSpec]
    """Every spec by id. A delete file is written under the spec of the data that it deletes from."""
    table_location: str
    properties: Mapping[str, str]
    io: FileIO
    key_field_ids: tuple[int, ...]
    """The key in key order; empty for a table without a key. Data files are sorted by it (FM-6)."""
    format_version: int
    sort_order_id: int | None = field(default=None)
    """The table's default sort order if it is the key, ascending with nulls first; otherwise None."""

    @classmethod
    def of(cls, metadata: TableMetadata, io: FileIO) -> WriteContext:
        """The context of a table's current schema and default spec."""
        schema = metadata.schema()
        key = key_field_ids(schema, metadata.properties)
        return cls(
            schema=schema,
            spec=metadata.spec(),
            specs=metadata.specs(),
            table_location=metadata.location,
            properties=dict(metadata.properties),
            io=io,
            key_field_ids=key,
            format_version=metadata.format_version,
            sort_order_id=_sort_order_of_key(metadata, key),
        )

    @cached_property
    def location_provider(self) -> LocationProvider:
        return location_provider(self.table_location, self.properties)

    @cached_property
    def range_partitions(self) -> DefinedPartitions | None:
        """RP-1: the ranges that exist; None without range partitions. Raises UnsupportedFeatureError for an unknown
        version."""
        return range_partitions_of(self.properties, self.schema)

    @cached_property
    def sorts_rows(self) -> bool:
        """FM-6, FM-28: whether writers sort the rows of a data file by the key."""
        return bool(self.key_field_ids) and property_one_of(self.properties, WRITE_SORT, WRITE_SORTS) != "none"

    @cached_property
    def bloom_filters(self) -> Sequence[FilterOption]:
        """FM-27: the columns with Bloom filters in data files."""
        return filter_options(self.properties, self.schema)

    @cached_property
    def metrics_modes(self) -> Mapping[int, MetricsMode]:
        """FM-8, RP-7: the metrics modes of columns that differ from the default, by field id."""
        ranges = self.range_partitions
        range_ids = () if ranges is None else ranges.key.field_ids
        return metrics_modes(self.properties, self.schema, self.key_field_ids, range_ids)

    @property
    def key_memory_bytes(self) -> int:
        """The memory for the keys of rows that wait for the comparison (CP-67)."""
        return self.memory_bytes // 8

    @cached_property
    def target_file_size_bytes(self) -> int:
        return positive_int(self.properties, TARGET_FILE_SIZE_BYTES, TARGET_FILE_SIZE_BYTES_DEFAULT)

    @cached_property
    def row_group_limit(self) -> int:
        """The maximum number of rows in a row group."""
        return positive_int(self.properties, ROW_GROUP_LIMIT, ROW_GROUP_LIMIT_DEFAULT)

    @cached_property
    def memory_bytes(self) -> int:
        """MT-63: the memory that a writer or a job may use for rows."""
        return positive_int(self.properties, WRITE_MEMORY_BYTES, WRITE_MEMORY_BYTES_DEFAULT)

    def with_memory(self, memory_bytes: int) -> WriteContext:
        """The context of a writer with a part of the memory."""
        return replace(self, properties={**self.properties, WRITE_MEMORY_BYTES: str(max(memory_bytes, 1))})

    def spec_of(self, spec_id: int) -> PartitionSpec:
        """Raises InvalidArgumentError for an unknown spec."""
        if spec_id not in self.specs:
            raise InvalidArgumentError(f"the table has no partition spec {spec_id}, only {sorted(self.specs)}.")
        return self.specs[spec_id]

    def new_file_location(self, file_name: str, spec_id: int | None, partition: tuple[Any, ...]) -> str:
        """The location of a new data or delete file of a partition, from the table's location provider. Without a spec,
        of no partition."""
        spec = None if spec_id is None else self.spec_of(spec_id)
        key = _KnownPartitionKey(spec, self.schema, partition) if spec is not None and spec.fields else None
        return self.location_provider.new_data_location(file_name, key)

    def with_row_lineage(self) -> WriteContext:
        """The context of files that also store `_row_id` and `_last_updated_sequence_number`: rows that are moved or
        updated keep their ids (v3).

        Rows have these two `long` columns after the table's own. A null is inherited when it is read, as in a file
        without the columns. Raises UnsupportedFeatureError for a table below version 3, which has no row lineage.
        """
        check_has_row_lineage(self.format_version)
        return replace(self, schema=schema_with_row_lineage(self.schema))

    def __getstate__(self) -> dict[str, Any]:
        # Cached values are cheap to compute again, and a custom location provider may not support pickling.
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


class _KnownPartitionKey(PartitionKey):
    """A partition key with known transformed values, so PyIceberg does not transform source values again."""

    def __init__(self, spec: PartitionSpec, schema: Schema, partition: tuple[Any, ...]) -> None:
        super().__init__(field_values=[], partition_spec=spec, schema=schema)
        object.__setattr__(self, "_values", partition)

    @property
    def partition(self) -> Record:
        values: tuple[Any, ...] = self._values  # type: ignore[attr-defined]
        return Record(*values)

    def to_path(self) -> str:
        """Includes years outside of Python's range."""
        types = self.partition_spec.partition_type(self.schema).fields
        texts = [
            (field.name, human_text(field.transform, typed.field_type, self.partition[position]))
            for position, (field, typed) in enumerate(zip(self.partition_spec.fields, types, strict=True))
        ]
        return "/".join(f"{quote_plus(name, safe='')}={quote_plus(text, safe='')}" for name, text in texts)


def _sort_order_of_key(metadata: TableMetadata, key: tuple[int, ...]) -> int | None:
    """The id of the default sort order, if files sorted by the key satisfy it."""
    order = metadata.sort_order_by_id(metadata.default_sort_order_id)
    if not key or order is None or len(order.fields) > len(key):
        return None
    for sort_field, field_id in zip(order.fields, key, strict=False):
        ascending = str(sort_field.direction) == "ASC" and str(sort_field.null_order) == "NULLS FIRST"
        if sort_field.source_id != field_id or str(sort_field.transform) != "identity" or not ascending:
            return None
    return order.order_id if order.fields else None
