"""Staged tables of running statements: CREATE TABLE AS SELECT and REPLACE TABLE.

Their metadata is held in memory, under names that the user's catalog does not contain. Spark writes and commits to them
like to any table. At the end, everything becomes one commit to the catalog. A reader sees either the previous state (or
no table), or the table with all its rows.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.io import FileIO
from pyiceberg.table import CommitTableResponse, CreateTableTransaction
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.typedef import Identifier

from tableformat.commit.metadata_update import apply_updates

NAMESPACE: Final = "__staged"


@dataclass(slots=True)
class StagedTable:
    """A staged table."""

    identifier: tuple[str, ...]
    """Its name in the user's catalog."""
    base: TableMetadata | None
    """The metadata of the table that is replaced; None for a new table."""
    creation: CreateTableTransaction | None
    """The transaction that adds a new table to the catalog."""
    metadata: TableMetadata
    io: FileIO
    updates: tuple[TableUpdate, ...] = ()
    """All updates since the table was staged, in order."""

    @property
    def is_written(self) -> bool:
        """Whether the statement has committed its rows."""
        return self._head(self.metadata) != (None if self.base is None else self._head(self.base))

    @staticmethod
    def _head(metadata: TableMetadata) -> int | None:
        return metadata.current_snapshot_id


class StagingCatalog(NoopCatalog):
    """A catalog that commits to memory. Thread-safe."""

    def __init__(self) -> None:
        super().__init__("staging")
        self._tables: dict[tuple[str, ...], StagedTable] = {}
        self._lock = threading.Lock()

    def add(self, table: StagedTable) -> tuple[str, ...]:
        """Add the table. Returns the identifier under which it can be loaded."""
        name = (NAMESPACE, f"{table.identifier[-1]}-{uuid.uuid4()}")
        self._tables[name] = table
        return name

    def staged(self, identifier: Sequence[str]) -> StagedTable | None:
        return self._tables.get(tuple(identifier))

    def remove(self, identifier: Sequence[str]) -> StagedTable | None:
        return self._tables.pop(tuple(identifier), None)

    def in_words_of_users(self, message: str) -> str:
        """The message with the final names of the tables instead of the staged ones."""
        for name, table in list(self._tables.items()):
            message = message.replace(".".join(name), ".".join(table.identifier))
        return message

    def load_table(self, identifier: str | Identifier) -> IcebergTable:
        name = self.identifier_to_tuple(identifier)
        table = self._tables.get(name)
        if table is None:
            raise NoSuchTableError(f"Table does not exist: {'.'.join(name)}")
        return IcebergTable(name, table.metadata, _location(name, table), table.io, self)

    def commit_table(
        self, table: IcebergTable, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        with self._lock:
            staged = self._tables.get(table.name())
            if staged is None:
                raise CommitFailedException(f"{'.'.join(table.name())} is no longer being created")
            for requirement in requirements:
                requirement.validate(staged.metadata)
            staged.metadata = apply_updates(staged.metadata, _location(table.name(), staged), updates)
            staged.updates += tuple(updates)
            return CommitTableResponse.model_construct(
                metadata=staged.metadata, metadata_location=_location(table.name(), staged)
            )


def is_staged(identifier: Sequence[str]) -> bool:
    return identifier[0] == NAMESPACE


def _location(identifier: Sequence[str], table: StagedTable) -> str:
    """The metadata location of a state. No metadata file exists, but each state has a unique name."""
    return f"{'.'.join(identifier)}/{len(table.updates)}"
