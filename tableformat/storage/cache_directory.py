"""A directory of files that can be computed again, so that the next process need not compute them.

It is off unless the variable `TABLEFORMAT_CACHE_DIR` names a directory, or is `auto` for the cache directory of the
user. Processes share the directory: a file is written under another name and then renamed. Each file begins with a
checksum and the identity of its content. A damaged file, or one with another identity, is removed and counts as
missing. If all files together are larger than `TABLEFORMAT_CACHE_BYTES`, the least recently used ones are removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import struct
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from tableformat.errors import InvalidArgumentError

DIRECTORY_VARIABLE: Final = "TABLEFORMAT_CACHE_DIR"
BYTES_VARIABLE: Final = "TABLEFORMAT_CACHE_BYTES"
BYTES_DEFAULT: Final = 2 * 1024**3
AUTO: Final = "auto"

_MAGIC: Final = b"TFCACHE1"
_HEADER: Final = struct.Struct("<8sIIQ")
"""Magic, checksum of everything after the header, and the lengths of identity and content in bytes."""
_SUFFIX: Final = ".cached"
_UNFINISHED_SUFFIX: Final = ".tmp"
_UNFINISHED_SECONDS: Final = 3_600
_USED_SECONDS: Final = 600
"""The age from which the time of the last use is updated."""
_KEPT_SHARE: Final = 0.8


@dataclass(frozen=True, slots=True)
class CacheDirectory:
    """Files by the identity of their content. Only this user may read them, because they may hold values of tables."""

    path: Path
    max_bytes: int

    @staticmethod
    def from_environment(variables: Mapping[str, str] | None = None) -> CacheDirectory | None:
        """The directory that the environment names, or None. Raises InvalidArgumentError if the size is not a
        number."""
        environment = os.environ if variables is None else variables
        stated = environment.get(DIRECTORY_VARIABLE, "")
        if not stated:
            return None
        size = environment.get(BYTES_VARIABLE, str(BYTES_DEFAULT))
        if not re.fullmatch("[0-9]+", size):
            raise InvalidArgumentError(f"{BYTES_VARIABLE} is {size!r}; it must be a number of bytes.")
        return CacheDirectory(_user_directory(environment) if stated == AUTO else Path(stated), int(size))

    def get(self, identity: str) -> memoryview | None:
        """The content with this identity. None if there is none; a damaged file is removed."""
        file = self._file(identity)
        try:
            data = file.read_bytes()
            used_ago = time.time() - file.stat().st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return None
        content = _content(data, identity)
        if content is None:
            file.unlink(missing_ok=True)
            return None
        if used_ago > _USED_SECONDS:
            with contextlib.suppress(FileNotFoundError):  # Another process made room meanwhile.
                os.utime(file)
        return content

    def put(self, identity: str, content: bytes | memoryview) -> None:
        """Store the content, unless it is larger than the whole directory may be. Raises OSError if it cannot be
        written."""
        described, view = identity.encode(), memoryview(content)
        if _HEADER.size + len(described) + view.nbytes > self.max_bytes:
            return
        file = self._file(identity)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        checksum = zlib.crc32(view, zlib.crc32(described))
        unfinished = file.with_name(f"{secrets.token_hex(8)}{_UNFINISHED_SUFFIX}")
        try:
            with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
                stream.write(_HEADER.pack(_MAGIC, checksum, len(described), view.nbytes))
                stream.write(described)
                stream.write(view)
            os.replace(unfinished, file)
        finally:
            unfinished.unlink(missing_ok=True)

    def make_room(self) -> None:
        """Remove the least recently used files if the directory is too large, and the temporary files of killed
        processes."""
        found: list[tuple[float, int, str]] = []
        now = time.time()
        for entry in _entries(self.path):
            with contextlib.suppress(FileNotFoundError):
                state = entry.stat()
                if entry.name.endswith(_SUFFIX):
                    found.append((state.st_mtime, state.st_size, entry.path))
                elif entry.name.endswith(_UNFINISHED_SUFFIX) and now - state.st_mtime > _UNFINISHED_SECONDS:
                    os.remove(entry.path)
        total = sum(size for _, size, _ in found)
        if total <= self.max_bytes:
            return
        for _, size, path in sorted(found):
            if total <= self.max_bytes * _KEPT_SHARE:
                break
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
            total -= size

    def _file(self, identity: str) -> Path:
        name = sha256(identity.encode()).hexdigest()
        return self.path / name[:2] / f"{name}{_SUFFIX}"


def _content(data: bytes, identity: str) -> memoryview | None:
    if len(data) < _HEADER.size:
        return None
    magic, checksum, identity_length, length = _HEADER.unpack_from(data)
    body = memoryview(data)[_HEADER.size :]
    if magic != _MAGIC or len(body) != identity_length + length or zlib.crc32(body) != checksum:
        return None
    return body[identity_length:] if bytes(body[:identity_length]) == identity.encode() else None


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    entries: list[os.DirEntry[str]] = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(directory) as folders:
        for folder in folders:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder.path) as files:
                entries += files
    return entries


def _user_directory(environment: Mapping[str, str]) -> Path:
    root = environment.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "tableformat" / "metadata"
