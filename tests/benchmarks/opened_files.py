"""The files that the library opens for reading, observed from outside."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tableformat.storage import storage


class OpenedFiles:
    """The locations that were opened while it watched."""

    def __init__(self) -> None:
        self.locations: list[str] = []

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Record every local file that `storage.storage` opens for reading; all reading uses it."""
        monkeypatch.setattr(storage, "pa", _RecordingArrow(pa, self.locations))
        monkeypatch.setattr(storage, "os", _RecordingOs(os, self.locations))
        monkeypatch.setattr(storage, "open", self._noting(open), raising=False)

    def of(self, suffix: str) -> list[str]:
        return [location for location in self.locations if location.endswith(suffix)]

    def _noting(self, opener: Callable[..., Any]) -> Callable[..., Any]:
        def noting(path: str, mode: str = "r", **options: Any) -> Any:
            if "r" in mode:
                self.locations.append(path)
            return opener(path, mode, **options)

        return noting


class _Recording:
    """A module, with a note of each file that is opened for reading."""

    def __init__(self, module: Any, locations: list[str]) -> None:
        self._module = module
        self._locations = locations

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class _RecordingArrow(_Recording):
    def OSFile(self, path: str, mode: str = "r") -> pa.OSFile:  # noqa: N802 - pyarrow's name
        if "r" in mode:
            self._locations.append(path)
        return self._module.OSFile(path, mode)


class _RecordingOs(_Recording):
    def open(self, path: str, flags: int, *mode: int) -> int:
        if not flags & (os.O_WRONLY | os.O_CREAT):
            self._locations.append(path)
        return int(self._module.open(path, flags, *mode))
