"""A cache that evicts the least recently used entries."""

from __future__ import annotations

from tableformat.storage.bounded_cache import BoundedCache


def test_least_recently_used_value_is_evicted_at_the_limit() -> None:
    cache: BoundedCache[str, str] = BoundedCache(10)
    cache.put("a", "first", 4)
    cache.put("b", "second", 4)
    assert cache.get("a") == "first"
    cache.put("c", "third", 4)
    assert [cache.get(key) for key in "abc"] == ["first", None, "third"]
