"""`Naming`: maps each location of a table to its new location (LK-6)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from tableformat.storage.location import local_path, one_spelling

_METADATA: Final = re.compile(r"v?(\d+)\b.*?((?:\.gz)?\.metadata\.json(?:\.gz)?)")
_SUFFIX: Final = re.compile(r"(\.[a-z]+)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """LK-6: a pure function of locations. All references to a file get the same new location, and a repeated attempt
    writes to the same locations. Different spellings stay different (`/a`, `file:/a`), because deletes match files by
    exact text."""

    former: str
    """The former directory or prefix."""
    target: str
    """The new directory or prefix."""
    table_target: str
    """The new location of the table. Files outside of `former` are copied there."""
    is_copy: bool
    """Whether files are copied. Otherwise they are already at the new location, and rewritten files get new names next
    to them."""

    def kept(self, location: str, folder: str = "data") -> str:
        """The new location of a file whose bytes do not change."""
        inside = self._inside(location)
        if inside is not None:
            return f"{self._root(location)}/{inside}"
        if not self.is_copy:
            return location
        return f"{self.table_target}/{folder}/{_digest(location)}-{location.rpartition('/')[2]}"

    def rewritten(self, location: str, folder: str = "metadata") -> str:
        """The new location of a file that contains paths. An immutable file cannot be changed in place."""
        if self.is_copy:
            return self.kept(location, folder)
        directory, name = self._directory(location, folder)
        suffix = _SUFFIX.search(name)
        stem, ending = (name[: suffix.start()], suffix[1]) if suffix else (name, "")
        return f"{directory}/{stem}-{_digest(f'{self.target} {location}')}{ending}"

    def metadata_file(self, location: str) -> str:
        """The new location of a table metadata file, whose name contains its version."""
        if self.is_copy:
            return self.kept(location, "metadata")
        directory, name = self._directory(location, "metadata")
        match = _METADATA.fullmatch(name)
        version, ending = (int(match[1]), match[2]) if match else (0, ".metadata.json")
        return f"{directory}/{version:05d}-{uuid5(NAMESPACE_URL, f'{self.target} {location}')}{ending}"

    def directory(self, location: str) -> str | None:
        """The new location of a directory in a property; None for a directory outside of `former`."""
        inside = self._inside(location.rstrip("/"))
        return None if inside is None else f"{self._root(location)}/{inside}"

    def _directory(self, location: str, folder: str) -> tuple[str, str]:
        directory, _, name = location.rpartition("/")
        return self.directory(directory) or f"{self.table_target}/{folder}", name

    def _inside(self, location: str) -> str | None:
        former = f"{one_spelling(self.former).rstrip('/')}/"
        spelled = one_spelling(location)
        return spelled.removeprefix(former) if spelled.startswith(former) else None

    def _root(self, location: str) -> str:
        """The target in the spelling of the location, if possible."""
        target = self.target.rstrip("/")
        source_path, target_path = local_path(location), local_path(target)
        if source_path is not None and target_path is not None:
            return location.removesuffix(source_path) + target_path
        scheme, separator, _ = location.partition("://")
        if scheme in ("s3", "s3a", "s3n") and one_spelling(target).startswith("s3://"):
            return f"{scheme}{separator}{target.partition('://')[2]}"
        return target


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
