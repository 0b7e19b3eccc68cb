"""State that the scans of one table share: its metadata, its FileIO, and caches of what was read through it."""

from __future__ import annotations

from threading import Lock
from typing import Final
from weakref import WeakKeyDictionary

from pyiceberg.io import FileIO

from tableformat.merge_on_read.deleted_positions import MergeCaches, MergeContext
from tableformat.metadata.snapshot_view import SnapshotView

_caches: Final[WeakKeyDictionary[FileIO, MergeCaches]] = WeakKeyDictionary()
_lock: Final = Lock()


def merge_context(view: SnapshotView) -> MergeContext:
    """A context for the view, with the caches of all views that read through the same FileIO.

    Files are immutable, so what was read stays right; it is forgotten with the FileIO, that is with the table handle.
    """
    with _lock:
        caches = _caches.setdefault(view.io, MergeCaches())
    return MergeContext(view.metadata, view.io, caches)
