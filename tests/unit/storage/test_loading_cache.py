"""A cache that loads each value once."""

from __future__ import annotations

import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tableformat.storage.loading_cache import LoadingCache


def test_concurrent_requests_load_a_value_once() -> None:
    cache: LoadingCache[str, str] = LoadingCache(100, len)
    loads = []

    def load() -> str:
        loads.append(1)
        time.sleep(0.02)
        return "value"

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: cache.get_or_load("key", load), range(4)))
    assert (found, loads) == (["value"] * 4, [1])


def test_failed_load_is_retried() -> None:
    """DA-8: a failure is never remembered as an empty value."""
    cache: LoadingCache[str, str] = LoadingCache(100, len)

    def fail() -> str:
        raise OSError("no such file")

    for _ in range(2):
        with pytest.raises(OSError, match="no such file"):
            cache.get_or_load("key", fail)
    assert cache.get_or_load("key", lambda: "value") == "value"


def test_values_above_the_bound_are_not_cached() -> None:
    cache: LoadingCache[str, str] = LoadingCache(3, len)
    assert cache.get_or_load("key", lambda: "value") == "value"
    assert cache.get_or_load("key", lambda: "other") == "other"


def test_pickled_cache_is_empty() -> None:
    cache: LoadingCache[str, str] = LoadingCache(100, len)
    cache.get_or_load("key", lambda: "value")
    assert pickle.loads(pickle.dumps(cache)).get_or_load("key", lambda: "new") == "new"
