"""How many examples a test is worth, as a share of what the profile gives: `make test-long` multiplies them all."""

from __future__ import annotations

from hypothesis import settings


def examples(share: float) -> int:
    """For `settings(max_examples=...)`; 1 is what a test without it gets."""
    return max(1, round(settings().max_examples * share))
