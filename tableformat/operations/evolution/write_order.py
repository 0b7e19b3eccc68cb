"""Sets the order and distribution of rows in newly written files."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table import Transaction
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField
from pyiceberg.table.update import SetPropertiesUpdate, TableRequirement, TableUpdate
from pyiceberg.table.update.sorting import UpdateSortOrder
from pyiceberg.transforms import IdentityTransform

from tableformat.errors import InvalidArgumentError
from tableformat.iceberg_properties import DISTRIBUTION_MODES
from tableformat.keys.table_key import key_field_ids, key_names
from tableformat.operations.history.references import commit_updates

_DISTRIBUTION_MODE = "write.distribution-mode"


def set_write_order(iceberg: IcebergTable, order: Sequence[SortField], distribution: str | None) -> None:
    """SQ-5: set the sort order of the table (empty without fields) and its distribution mode, in one commit. Without a
    given mode, the mode stays unchanged.

    Rows of a table with a key are always in key order (FM-6), so its sort order stays unchanged. Raises
    InvalidArgumentError for an order that the key order does not satisfy, and for a transform that the column does not
    support.
    """
    assert distribution is None or distribution in DISTRIBUTION_MODES, distribution
    metadata = iceberg.metadata
    key = key_field_ids(metadata.schema(), metadata.properties)
    updates: tuple[TableUpdate, ...] = ()
    requirements: tuple[TableRequirement, ...] = ()
    if key:
        _check_order_of_key(iceberg, order, key)
    else:
        updates, requirements = _sort_order(iceberg, order)
    if distribution is not None:
        updates = (*updates, SetPropertiesUpdate(updates={_DISTRIBUTION_MODE: distribution}))
    if updates:
        commit_updates(iceberg, requirements, updates)


def _check_order_of_key(iceberg: IcebergTable, order: Sequence[SortField], key: Sequence[int]) -> None:
    leads = len(order) <= len(key) and all(
        field.source_id == field_id
        and isinstance(field.transform, IdentityTransform)
        and field.direction is SortDirection.ASC
        and field.null_order is NullOrder.NULLS_FIRST
        for field, field_id in zip(order, key, strict=False)
    )
    if not leads:
        names = ", ".join(key_names(iceberg.metadata.schema(), key))
        raise InvalidArgumentError(
            f"{'.'.join(iceberg.name())} has the key ({names}), and its files are sorted by the key for range "
            f"deletes. Only ORDERED BY {names}, or its first columns, ascending and nulls first, is allowed; for "
            "another order, use a table without a key. Nothing was changed."
        )


def _sort_order(
    iceberg: IcebergTable, order: Sequence[SortField]
) -> tuple[tuple[TableUpdate, ...], tuple[TableRequirement, ...]]:
    schema = iceberg.metadata.schema()
    builder = UpdateSortOrder(Transaction(iceberg))
    for field in order:
        column = schema.find_field(field.source_id)
        if not field.transform.can_transform(column.field_type):
            raise InvalidArgumentError(
                f"ORDERED BY: {field.transform} does not support {column.name!r}, a {column.field_type}."
            )
        add = builder.asc if field.direction is SortDirection.ASC else builder.desc
        name = schema.find_column_name(field.source_id)
        assert name is not None, "a column that was found has a name"
        add(name, field.transform, field.null_order)
    return builder._commit()
