"""The unpartitioned spec under which global deletes are written (FM-5)."""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.update import AddPartitionSpecUpdate, TableRequirement, TableUpdate

from tableformat.commit.metadata_commit import commit_metadata
from tableformat.deletes.rules import is_unpartitioned


def global_spec_id(iceberg: IcebergTable) -> int:
    """FM-5: the id of a spec of the table that puts every row in one partition.

    A table of another writer may lack such a spec. Then it is added in a commit of its own and found by its content,
    because servers reassign spec ids.
    """
    known = _find(iceberg.metadata.partition_specs)
    if known is not None:
        return known
    commit_metadata(iceberg, _new_spec)
    added = _find(iceberg.metadata.partition_specs)
    assert added is not None, "the catalog accepted an unpartitioned spec and does not list it"
    return added


def _new_spec(table: IcebergTable) -> tuple[tuple[TableUpdate, ...], tuple[TableRequirement, ...]]:
    """Add an unpartitioned spec, unless another writer has added one in the meantime."""
    specs = table.metadata.partition_specs
    if _find(specs) is not None:
        return (), ()
    next_id = max(spec.spec_id for spec in specs) + 1
    return (AddPartitionSpecUpdate(spec=PartitionSpec(spec_id=next_id)),), ()


def _find(specs: Iterable[PartitionSpec]) -> int | None:
    return next((spec.spec_id for spec in specs if is_unpartitioned(spec)), None)
