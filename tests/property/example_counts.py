"""The number of examples of a test, as a share of the profile's number: `make test-long` multiplies all of them."""

from __future__ import annotations

from hypothesis import settings


def examples(share: float) -> int:
    """For `settings(max_examples=...)`; 1 is what a test without it gets."""
    return max(1, round(settings().max_examples * share))
