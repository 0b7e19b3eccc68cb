"""The live data files of raw manifests: without deleted entries, with inherited numbers and row ids, and decoded
partitions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionSpec

from tableformat.metadata.columns.data_columns import LIVE_COLUMNS, DataColumns, Indices, Partition
from tableformat.metadata.columns.raw_manifest import RawManifest
from tableformat.metadata.content_file import FileContent
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestFile
from tableformat.metadata.manifests.manifest_reader import layout_of_schema, partition_fields

_REQUIRED = ("status", "content", "file_path", "file_format", "record_count", "file_size_in_bytes")


class OddEntriesError(Exception):
    """Entries whose error the object reader has to report."""


def live_files(members: Sequence[tuple[ManifestFile, RawManifest]], specs: dict[int, PartitionSpec]) -> DataColumns:
    """The data files of the manifests, in order. Raises OddEntriesError for entries that data manifests cannot have."""
    filled = [(manifest, raw) for manifest, raw in members if raw.batch.num_rows]
    runs = [
        list(run) for _, run in groupby(filled, lambda member: (member[1].avro_schema, member[0].partition_spec_id))
    ]
    return DataColumns.concat([_run(run, specs[run[0][0].partition_spec_id]) for run in runs])


def _run(members: Sequence[tuple[ManifestFile, RawManifest]], spec: PartitionSpec) -> DataColumns:
    """The files of manifests with one spec and one Avro schema."""
    batches = [raw.batch for _, raw in members]
    batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    manifests = [manifest for manifest, _ in members]
    owners = np.repeat(np.arange(len(members)), [part.num_rows for part in batches])
    if any(batch[name].null_count for name in _REQUIRED):
        raise OddEntriesError
    if (np.asarray(batch["content"]) != FileContent.DATA).any():
        raise OddEntriesError
    status = np.asarray(batch["status"])
    if not np.isin(status, [int(each) for each in EntryStatus]).all():
        raise OddEntriesError
    is_live = status != EntryStatus.DELETED
    columns = {name: batch[name] for name in LIVE_COLUMNS}
    for name in ("sequence_number", "file_sequence_number"):
        columns[name] = _inherited(batch[name], status, manifests, owners)
    columns["first_row_id"] = _row_ids(batch, is_live, manifests, owners)
    columns["file_format"] = pc.utf8_upper(batch["file_format"])
    live = pa.RecordBatch.from_pydict(columns)
    partition = batch["partition"]
    if not is_live.all():
        kept = pa.array(is_live)
        live, partition = live.filter(kept), partition.filter(kept)
    ids, partitions = _partitions(partition, spec, members[0])
    return DataColumns(live, partitions, ids)


def _inherited(
    stored: pa.Array, status: npt.NDArray[np.int32], manifests: Sequence[ManifestFile], owners: Indices
) -> pa.Array:
    """DA-9: a null number is the number of the manifest, for ADDED entries and for every entry of a v1 manifest."""
    if stored.null_count == 0:
        return stored
    if any(manifest.sequence_number is None for manifest in manifests):
        raise OddEntriesError
    own = np.array([manifest.sequence_number for manifest in manifests], np.int64)[owners]
    is_null = np.asarray(stored.is_null())
    if (is_null & (status != EntryStatus.ADDED) & (own != 0)).any():
        raise OddEntriesError
    return pc.coalesce(stored, pa.array(own))


def _row_ids(
    batch: pa.RecordBatch, is_live: npt.NDArray[np.bool_], manifests: Sequence[ManifestFile], owners: Indices
) -> pa.Array:
    """First row ids: files without one get the next id of the manifest, in the order of the entries."""
    stored = batch["first_row_id"]
    has_next = np.array([manifest.first_row_id is not None for manifest in manifests], np.bool_)
    if stored.null_count == 0 or not has_next.any():
        return stored
    takes = np.asarray(stored.is_null()) & is_live & has_next[owners]
    rows = np.where(takes, np.asarray(batch["record_count"]), 0)
    before = np.cumsum(rows) - rows
    first_of_owner = np.searchsorted(owners, np.arange(len(manifests)))
    firsts = np.array([manifest.first_row_id or 0 for manifest in manifests], np.int64)
    assigned = firsts[owners] + before - before[first_of_owner][owners]
    return pc.coalesce(stored, pa.array(assigned, mask=~takes))


def _partitions(
    stored: pa.Array, spec: PartitionSpec, member: tuple[ManifestFile, RawManifest]
) -> tuple[Indices, tuple[Partition, ...]]:
    """For each file the index of its partition, and the distinct partitions."""
    manifest, raw = member
    count = len(stored)
    if count == 0:
        return np.zeros(0, np.int64), ()
    if not spec.fields:
        return np.zeros(count, np.int64), ((spec.spec_id, ()),)
    places = partition_fields(spec, layout_of_schema(raw.avro_schema, manifest.manifest_path), manifest.manifest_path)
    ids = np.zeros(count, np.int64)
    columns = [stored.field(name) for name, _ in places]
    for column in columns:
        codes, distinct_count = _codes(column)
        _, ids = np.unique(ids * distinct_count + codes, return_inverse=True)
    _, first, ids = np.unique(ids, return_index=True, return_inverse=True)
    chosen = pa.array(first)
    values: list[list[Any]] = []
    for column, (_, convert) in zip(columns, places, strict=True):
        found = column.take(chosen).to_pylist()
        values.append([each if convert is None or each is None else convert(each) for each in found])
    return ids.astype(np.int64), tuple((spec.spec_id, partition) for partition in zip(*values, strict=True))


def _codes(column: pa.Array) -> tuple[Indices, int]:
    """Equal numbers for equal values. All NaNs are equal, -0.0 differs from 0.0, null is a value of its own."""
    if pa.types.is_floating(column.type):
        numbers = np.asarray(column.cast(pa.float64()).fill_null(0.0))
        bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
        column = pa.array(bits, mask=np.asarray(column.is_null()))
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.int64), 1
    encoded = column.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64), len(encoded.dictionary)
