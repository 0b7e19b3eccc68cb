"""`NewerDeletes`: the equality deletes of a data file whose bounds overlap most of very many deletes.

With N small upserts, the first file has N - 1 newer delete files, the second N - 2, and so on. Listed for each file
they are N * N / 2 entries, and each list has another set of keys. Therefore the files of a plan share one list:

    all, oldest first        5   7   7   9   12
    file of number 7                     `-------->    `start` is 3
    file of number 4         `-------------------->    `start` is 0

The keys of the whole list can be used. Keys of a delete that is not newer delete no row (DA-2), and keys of a delete
that the bounds of the file exclude are not in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import Any, TypeAlias, overload

import numpy as np

from tableformat.cached_property import cached_property
from tableformat.deletes.rules import committed_sequence_number
from tableformat.metadata.content_file import DeleteFile

DeleteIdentity: TypeAlias = tuple[str, int]
"""Path and sequence number. They are enough, because files never change."""


class SharedDeletes:
    """Equality delete files of one scope and one list of delete columns, oldest first. Immutable."""

    def __init__(self, deletes: Sequence[DeleteFile]) -> None:
        self.deletes = tuple(sorted(deletes, key=committed_sequence_number))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.deletes,)

    @property
    def field_ids(self) -> tuple[int, ...]:
        return self.deletes[0].equality_ids or ()

    @cached_property
    def numbers(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The sequence number of each delete file."""
        return np.array([committed_sequence_number(delete) for delete in self.deletes], np.int64)

    @cached_property
    def identities(self) -> tuple[DeleteIdentity, ...]:
        return tuple((delete.file_path, committed_sequence_number(delete)) for delete in self.deletes)

    @cached_property
    def digests(self) -> tuple[bytes, ...]:
        """For each position the identity of the deletes from there on, independent of the deletes before."""
        found, digest = [], b""
        for path, number in reversed(self.identities):
            digest = blake2b(b"%s\0%d\0%s" % (path.encode(), number, digest), digest_size=16).digest()
            found.append(digest)
        return tuple(reversed(found))

    @cached_property
    def record_counts_from(self) -> tuple[int, ...]:
        """For each position, and the end, the number of rows in the delete files from there on."""
        counts = [delete.record_count for delete in self.deletes]
        return tuple(accumulate(reversed(counts), initial=0))[::-1]


class NewerDeletes(Sequence[DeleteFile]):
    """The delete files of a shared list that are newer than a data file: all from `start` on. Not empty."""

    __slots__ = ("shared", "start")

    def __init__(self, shared: SharedDeletes, start: int) -> None:
        self.shared = shared
        self.start = start

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.shared, self.start)

    def __len__(self) -> int:
        return len(self.shared.deletes) - self.start

    @overload
    def __getitem__(self, index: int) -> DeleteFile: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[DeleteFile, ...]: ...
    def __getitem__(self, index: int | slice) -> DeleteFile | tuple[DeleteFile, ...]:
        return self._listed[index]

    def __iter__(self) -> Iterator[DeleteFile]:
        return iter(self._listed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NewerDeletes) and self.identities == other.identities

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def _listed(self) -> tuple[DeleteFile, ...]:
        return self.shared.deletes[self.start :]

    @property
    def digest(self) -> bytes:
        """Equal if the deletes are equal."""
        return self.shared.digests[self.start]

    @property
    def identities(self) -> tuple[DeleteIdentity, ...]:
        return self.shared.identities[self.start :]

    @property
    def record_count(self) -> int:
        """The number of rows in all of the delete files."""
        return self.shared.record_counts_from[self.start]
