"""Stores a stream of batches to read it again: in memory while it is small, then in a temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final

import pyarrow as pa

HELD_BYTES: Final = 16 * 1024 * 1024
"""Maximum size in memory: little compared to the memory that a writer has for its own rows (MT-63)."""
_IPC_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")


class HeldBatches:
    """Batches of one schema, in the order of their arrival. A context manager, which removes the file at its end."""

    def __init__(self, schema: pa.Schema, *, held_bytes: int | None = None) -> None:
        """`held_bytes`: maximum size in memory, by default HELD_BYTES."""
        self._schema = schema
        self._limit = HELD_BYTES if held_bytes is None else held_bytes
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._file: pa.RecordBatchStreamWriter | None = None

    def __enter__(self) -> HeldBatches:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        if self._directory is not None:
            self._directory.cleanup()

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def is_spilled(self) -> bool:
        """Whether some batches are in a temporary file."""
        return self._directory is not None

    def append(self, batch: pa.RecordBatch) -> None:
        """All batches have to be appended before any is read."""
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes > self._limit:
            self._spill()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._close()
        if self._directory is not None:
            with pa.OSFile(str(self._path)) as source, pa.ipc.open_stream(source) as reader:
                yield from reader
        yield from self._held

    @property
    def _path(self) -> Path:
        assert self._directory is not None, "something was spilled"
        return Path(self._directory.name, "rows.arrow")

    def _spill(self) -> None:
        if self._file is None:
            self._directory = tempfile.TemporaryDirectory(prefix="tableformat-held-rows-")
            self._file = pa.ipc.new_stream(str(self._path), self._schema, options=_IPC_OPTIONS)
        for batch in self._held:
            self._file.write_batch(batch)
        self._held, self._held_bytes = [], 0

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
