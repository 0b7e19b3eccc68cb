"""What tests of more than one folder need."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tableformat.demo.java_runtime import INSTALL_HINT, find_java

REPOSITORY = Path(__file__).parents[1]

# Examples touch the disk, so their time says nothing; how many there are is what a profile decides.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("ci", max_examples=100, derandomize=True, **_COMMON)
settings.register_profile("dev", max_examples=100, **_COMMON)
settings.register_profile("soak", max_examples=5_000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


@pytest.fixture(scope="session")
def fixtures_root() -> Path:
    """Tables that other writers made, which live beside the repository; tests of them skip where they are missing."""
    root = REPOSITORY.parent / "shared" / "fixtures" / "iceberg"
    if not root.is_dir():
        pytest.skip("the fixture tables of other writers (../shared/fixtures/iceberg) are not here")
    return root


@pytest.fixture(scope="session")
def needs_java() -> None:
    """Skips with the reason where Spark cannot run; in CI that is a failure."""
    if find_java() is None:
        if os.environ.get("CI"):
            pytest.fail(INSTALL_HINT)
        pytest.skip(INSTALL_HINT)
