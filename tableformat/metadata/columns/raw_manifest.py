"""A manifest of data files as one Arrow batch, in the columns that this library knows, for any writer."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import FileIO

from tableformat.metadata.columns.arrow_records import RecordBlock, decode_entries
from tableformat.metadata.columns.avro_lanes import UnsupportedLayoutError
from tableformat.metadata.content_file import FileContent
from tableformat.metadata.manifests.avro_container import Container, read_container
from tableformat.metadata.manifests.manifest_entry import ManifestFile
from tableformat.metadata.manifests.manifest_reader import layout_of
from tableformat.metadata.manifests.manifest_schema import rename_by_field_id
from tableformat.properties import inflated_bytes_max
from tableformat.storage import storage
from tableformat.storage.location import local_path

REMOTE_READERS: Final = 16
"""The number of manifests that are fetched concurrently from an object store."""


def _pairs(value_type: pa.DataType) -> pa.DataType:
    """A map of column ids, as Avro's array of pairs."""
    return pa.list_(pa.struct([("key", pa.int32()), ("value", value_type)]))


METRICS: Final[Mapping[str, pa.DataType]] = {
    "column_sizes": _pairs(pa.int64()),
    "value_counts": _pairs(pa.int64()),
    "null_value_counts": _pairs(pa.int64()),
    "nan_value_counts": _pairs(pa.int64()),
    "lower_bounds": _pairs(pa.binary()),
    "upper_bounds": _pairs(pa.binary()),
}
"""The metrics of an entry, by the names of attributes of `DataFile`."""
COLUMNS: Final[Mapping[str, pa.DataType]] = {
    "status": pa.int32(),
    "content": pa.int32(),
    "sequence_number": pa.int64(),
    "file_sequence_number": pa.int64(),
    "file_path": pa.string(),
    "file_format": pa.string(),
    "record_count": pa.int64(),
    "file_size_in_bytes": pa.int64(),
    **METRICS,
    "key_metadata": pa.binary(),
    "split_offsets": pa.list_(pa.int64()),
    "sort_order_id": pa.int32(),
    "first_row_id": pa.int64(),
}
"""Without the partition, whose type depends on the writer's spec."""


@dataclass(frozen=True, slots=True, eq=False)
class RawManifest:
    """The stored entries of one manifest, including deleted ones, without inheritance."""

    batch: pa.RecordBatch
    """`COLUMNS`, and `partition` as the writer stored it."""
    avro_schema: bytes
    """The writer's schema, which defines the partition values."""

    @property
    def size_bytes(self) -> int:
        return int(self.batch.nbytes) + len(self.avro_schema)


def decode_manifests(io: FileIO, manifests: Sequence[ManifestFile]) -> list[RawManifest]:
    """Read and decode manifests together: many small ones cost little more than a large one.

    Raises CorruptFileError, which names the manifest, and UnsupportedLayoutError for a schema that only `read_manifest`
    can read.
    """

    bytes_max = inflated_bytes_max(io.properties)

    def read(manifest: ManifestFile) -> Container:
        return read_container(storage.read_bytes(io, manifest.manifest_path), manifest.manifest_path, bytes_max)

    if len(manifests) > 1 and local_path(manifests[0].manifest_path) is None:
        with ThreadPoolExecutor(REMOTE_READERS) as pool:
            containers = list(pool.map(read, manifests))
    else:
        containers = [read(manifest) for manifest in manifests]
    by_schema: dict[bytes, list[int]] = defaultdict(list)
    for index, container in enumerate(containers):
        layout_of(container)
        by_schema[container.metadata["avro.schema"]].append(index)
    raw: list[RawManifest | None] = [None] * len(containers)
    for avro_schema, indexes in by_schema.items():
        decoded = _decoded([containers[index] for index in indexes], avro_schema)
        for index, batch in zip(indexes, decoded, strict=True):
            raw[index] = RawManifest(batch, avro_schema)
    return [each for each in raw if each is not None]


def _decoded(containers: Sequence[Container], avro_schema: bytes) -> list[pa.RecordBatch]:
    blocks = [
        RecordBlock(count, data, container.location) for container in containers for count, data in container.blocks
    ]
    batches = decode_entries(blocks, _renamed(avro_schema), layout_of(containers[0]).codec)
    counts = [sum(max(count, 0) for count, _ in container.blocks) for container in containers]
    together = _one_batch([_canonical(batch) for batch in batches])
    result, start = [], 0
    for count in counts:
        result.append(together.slice(start, count))
        start += count
    return result


@lru_cache(maxsize=128)
def _renamed(avro_schema: bytes) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = _spelled_out(rename_by_field_id(json.loads(avro_schema)).schema, {})
    return schema


def _spelled_out(schema: Any, named: dict[str, Any]) -> Any:
    """The schema with named types replaced by their definitions."""
    if isinstance(schema, str):
        return named.get(schema, schema)
    if isinstance(schema, list):
        return [_spelled_out(branch, named) for branch in schema]
    spelled = dict(schema)
    if "name" in schema and schema.get("type") in ("fixed", "record", "enum"):
        named[schema["name"]] = spelled
    for inner in ("type", "items", "values"):
        if isinstance(spelled.get(inner), (dict, list, str)):
            spelled[inner] = _spelled_out(spelled[inner], named)
    if "fields" in spelled:
        spelled["fields"] = [_spelled_out(field, named) for field in spelled["fields"]]
    return spelled


def _canonical(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The known columns in our types. A column that the writer lacks is null."""
    names = set(batch.schema.names)
    columns = {
        name: batch[name].cast(data_type) if name in names else pa.nulls(batch.num_rows, data_type)
        for name, data_type in COLUMNS.items()
    }
    if "content" not in names:
        columns["content"] = pc.fill_null(columns["content"], int(FileContent.DATA))
    if "partition" not in names:
        raise UnsupportedLayoutError("no partition")
    columns["partition"] = batch["partition"]
    return pa.RecordBatch.from_pydict(columns)


def _one_batch(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if not batches:
        return pa.RecordBatch.from_pydict(
            {**{name: pa.nulls(0, data_type) for name, data_type in COLUMNS.items()}, "partition": pa.nulls(0)}
        )
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
