"""The range partitions of a table as a dataset for engines. They are listed only when the dataset is scanned."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from tableformat.cached_property import cached_property
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.listing import listing_schema, partition_list
from tableformat.range_partitions.past import partitions_listed_at


class ListedPartitions(ds.Dataset):  # type: ignore[misc]  # pyarrow has no type hints
    """RP-14: the partition list of one snapshot, made once from its manifests."""

    def __init__(self, view: SnapshotView, branch: str, defined: DefinedPartitions) -> None:
        """`defined` are the table's range partitions, which determine the columns of the list."""
        self._view = view
        self._branch = branch
        self._defined = defined

    @property
    def schema(self) -> pa.Schema:
        """Known without reading any file."""
        return listing_schema(self._defined)

    def scanner(self, **options: Any) -> ds.Scanner:
        """The scanner of an in-memory dataset: pyarrow applies columns and filters."""
        return self._listed.scanner(**options)

    def count_rows(self, **options: Any) -> int:
        """The number of partitions that pass the filter."""
        count: int = self._listed.count_rows(**options)
        return count

    @cached_property
    def _listed(self) -> ds.InMemoryDataset:
        return ds.InMemoryDataset(partition_list(self._view, partitions_listed_at(self._view, self._branch)))
