"""Renames columns as another writer does, who knows no reserved names (FM-35)."""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.table import Transaction
from pyiceberg.table.update.schema import UpdateSchema

from tableformat import Table


def rename_as_another_writer(table: Table, names: Mapping[str, str]) -> None:
    """Rename the columns with PyIceberg, and refresh the handle."""
    transaction = Transaction(table.iceberg)
    with UpdateSchema(transaction) as update:
        for old, new in names.items():
            update.rename_column(old, new)
    transaction.commit_transaction()
    table.refresh()
