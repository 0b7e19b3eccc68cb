"""Tests of what jobs hold at their peak; `make test` runs them with the allocator that memray can see into."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest


@pytest.fixture(autouse=True)
def visible_allocator() -> Iterator[None]:
    """mimalloc and jemalloc take memory from the system in large pieces that say nothing about what is in use."""
    if pa.default_memory_pool().backend_name != "system":
        pytest.skip("peaks are measured with ARROW_DEFAULT_MEMORY_POOL=system")
    cores = pa.cpu_count()
    # What is held for each core is the same everywhere.
    pa.set_cpu_count(2)
    yield
    pa.set_cpu_count(cores)
