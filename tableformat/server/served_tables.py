"""Loads tables for clients: the head of a table, or its staged conversion while equality or range deletes are pending.

    head s7 has no keyed delete               served: the catalog's metadata
    head s7 has one, s8 is its conversion     served: the same, with main at s8
    head s7 has one, no conversion yet        s8 is staged first; one conversion at a time for each table

While a conversion runs, other clients get the last served state if it is at most `freshness_seconds` old (SV-7).
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from threading import Lock
from typing import Final
from uuid import UUID

from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Identifier

from tableformat.commit.change import KEYED_KINDS
from tableformat.errors import SnapshotNotFoundError, TableFormatError, UnsupportedFeatureError
from tableformat.maintenance.conversion.staged_conversion import (
    StagedConversion,
    delete_kinds,
    stage_conversion,
)
from tableformat.maintenance.expiry.expire_snapshots import expire_snapshots
from tableformat.metadata.content_file import DeleteKind
from tableformat.metadata.snapshot_choice import view_at
from tableformat.metadata.staged_conversions import conversions_out_of_use, staged_conversions
from tableformat.properties import SERVE_DELETE_FORMAT_DEFAULT, may_remove_files, staged_max_age_ms
from tableformat.server.delete_format import unreadable_reason
from tableformat.server.served_metadata import ServedTable, served_table
from tableformat.storage.bounded_cache import BoundedCache

logger = logging.getLogger(__name__)

_CACHED_BYTES: Final = 128 * 1024 * 1024
_CACHED_SNAPSHOTS: Final = 10_000


@dataclass(slots=True)
class _TableState:
    """The state of one table in this server. The lock is held while a conversion runs."""

    lock: Lock = field(default_factory=Lock)
    recent: tuple[float, ServedTable | None] = (0.0, None)
    """When the last served state was the head, by the monotonic clock in seconds, and that state. None after a commit,
    until the table is loaded again."""
    converted: StagedConversion | None = None
    """The last conversion of this process, whose files the next one uses again."""
    name: Identifier | None = None
    """The name under which a conversion was staged last; None if this process staged none."""


class ServedTables:
    """The tables of one catalog, as clients see them. Safe for many threads."""

    def __init__(
        self,
        catalog: IcebergCatalog,
        freshness_seconds: float,
        delete_format: str = SERVE_DELETE_FORMAT_DEFAULT,
    ) -> None:
        self._catalog = catalog
        self._freshness_seconds = freshness_seconds
        self._delete_format = delete_format
        self._states: dict[UUID, _TableState] = {}
        self._states_lock = Lock()
        self._served: BoundedCache[str, ServedTable] = BoundedCache(_CACHED_BYTES)
        self._kinds: BoundedCache[tuple[UUID, int], frozenset[DeleteKind]] = BoundedCache(_CACHED_SNAPSHOTS)

    def load(self, identifier: Identifier) -> ServedTable:
        """The table in a state that was the head of `main` at most `freshness_seconds` ago.

        Raises UnsupportedFeatureError if its clients cannot read the deletes of that state (SV-15).
        """
        loaded_at = time.monotonic()
        table = self._catalog.load_table(identifier)
        if (known := self._known(table)) is not None:
            return self._remember(table, known, loaded_at)
        state = self._state(table)
        if (recent := self._recent(state)) is not None:
            return recent
        with state.lock:
            if (recent := self._recent(state)) is not None:
                return recent
            loaded_at = time.monotonic()
            table = self._catalog.load_table(identifier)
            known = self._known(table)
            if known is None:
                known = self._converted(table, state)
            return self._remember(table, known, loaded_at)

    def after_commit(self, identifier: Identifier, *, adds_snapshot: bool) -> ServedTable:
        """The table after a commit of a client, which sees its own commit.

        SV-10: deletes of the client's own snapshot are not converted for it, so that a writer of equality deletes does
        not wait for a conversion at each commit.
        """
        table = self._catalog.load_table(identifier)
        self._forget_recent(table)
        if adds_snapshot:
            return self._plain(table)
        return self.load(identifier)

    def committed(self, identifier: Identifier) -> None:
        """A client has committed, and sees its commit from now on."""
        self._forget_recent(self._catalog.load_table(identifier))

    def conversion_of(self, table: IcebergTable, snapshot: Snapshot) -> Snapshot:
        """The snapshot itself if no keyed delete is pending in it, or else its staged conversion. Moves the handle if
        a conversion was staged. Raises UnsupportedFeatureError as `load` does."""
        self._check_readable(table, snapshot)
        if not self._is_pending(table, snapshot):
            return snapshot
        staged = staged_conversions(table.metadata).get(snapshot.snapshot_id)
        if staged is not None:
            return staged
        state = self._state(table)
        with state.lock:
            newest = self._catalog.load_table(table.name())
            staged = staged_conversions(newest.metadata).get(snapshot.snapshot_id)
            if staged is None:
                staged = stage_conversion(newest, snapshot, state.converted).snapshot
                state.name = newest.name()
            table.metadata, table.metadata_location = newest.metadata, newest.metadata_location
            return staged

    def clean_up(self) -> None:
        """SV-8: remove the staged conversions that are out of use, in all tables for which this process staged one. A
        table that cannot be cleaned up is logged; the next call tries it again."""
        with self._states_lock:
            names = [state.name for state in self._states.values() if state.name is not None]
        for name in names:
            try:
                remove_out_of_use(self._catalog.load_table(name))
            except NoSuchTableError:
                continue  # It was dropped or renamed.
            except (TableFormatError, OSError):
                logger.warning("staged conversions of %s were not cleaned up", ".".join(name), exc_info=True)

    def _known(self, table: IcebergTable) -> ServedTable | None:
        """The state, if it needs no conversion or has one already."""
        known = self._served.get(table.metadata_location)
        if known is not None:
            return known
        head = table.metadata.current_snapshot()
        if head is not None:
            self._check_readable(table, head)
        if head is None or not self._is_pending(table, head):
            return self._plain(table)
        staged = staged_conversions(table.metadata).get(head.snapshot_id)
        return None if staged is None else self._keep(table, served_table(table, staged))

    def _plain(self, table: IcebergTable) -> ServedTable:
        head = table.metadata.current_snapshot()
        served = served_table(table, None)
        # The unconverted state of a table with pending deletes is only for the client that committed it.
        return served if head is not None and self._is_pending(table, head) else self._keep(table, served)

    def _converted(self, table: IcebergTable, state: _TableState) -> ServedTable:
        """SV-5: the loaded state with the conversion of its head, even if others committed in the meantime."""
        head = table.metadata.current_snapshot()
        assert head is not None, "a table without snapshots has no deletes"
        loaded = IcebergTable(table.name(), table.metadata, table.metadata_location, table.io, table.catalog)
        try:
            state.converted = stage_conversion(table, head, state.converted)
        except SnapshotNotFoundError:
            # The head expired while it was converted, so that there is a newer one.
            newest = self._catalog.load_table(table.name())
            if newest.metadata.current_snapshot_id == head.snapshot_id:
                raise
            return self._known(newest) or self._converted(newest, state)
        state.name = table.name()
        log = table.metadata.metadata_log
        if not log or log[-1].metadata_file != loaded.metadata_location:
            return self._keep(loaded, served_table(loaded, state.converted.snapshot))
        # Nobody else committed, so later loads get the same answer.
        return self._keep(table, served_table(loaded, state.converted.snapshot, table.metadata_location))

    def _check_readable(self, table: IcebergTable, snapshot: Snapshot) -> None:
        reason = unreadable_reason(table.metadata, self._kinds_in(table, snapshot), self._delete_format)
        if reason is not None:
            raise UnsupportedFeatureError(f"{'.'.join(table.name())}: {reason}")

    def _is_pending(self, table: IcebergTable, snapshot: Snapshot) -> bool:
        return not KEYED_KINDS.isdisjoint(self._kinds_in(table, snapshot))

    def _kinds_in(self, table: IcebergTable, snapshot: Snapshot) -> frozenset[DeleteKind]:
        key = (table.metadata.table_uuid, snapshot.snapshot_id)
        kinds = self._kinds.get(key)
        if kinds is None:
            kinds = delete_kinds(view_at(table.metadata, table.io, snapshot.snapshot_id))
            self._kinds.put(key, kinds, 1)
        return kinds

    def _keep(self, table: IcebergTable, served: ServedTable) -> ServedTable:
        self._served.put(table.metadata_location, served, len(served.text))
        return served

    def _remember(self, table: IcebergTable, served: ServedTable, loaded_at: float) -> ServedTable:
        state = self._state(table)
        if loaded_at >= state.recent[0]:
            state.recent = loaded_at, served
        return served

    def _forget_recent(self, table: IcebergTable) -> None:
        self._state(table).recent = time.monotonic(), None

    def _recent(self, state: _TableState) -> ServedTable | None:
        loaded_at, served = state.recent
        is_fresh = time.monotonic() - loaded_at <= self._freshness_seconds
        return served if is_fresh and self._freshness_seconds > 0 else None

    def _state(self, table: IcebergTable) -> _TableState:
        with self._states_lock:
            return self._states.setdefault(table.metadata.table_uuid, _TableState())


def remove_out_of_use(table: IcebergTable) -> None:
    """SV-8: remove the staged conversions that no reader needs, and the files that only they name."""
    metadata = table.metadata
    unused = conversions_out_of_use(metadata, time.time_ns() // 1_000_000, staged_max_age_ms(metadata.properties))
    if unused:
        expire_snapshots(table, snapshot_ids=unused, clean_expired_files=may_remove_files(metadata.properties))
