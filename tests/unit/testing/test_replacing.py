"""Functions that a test replaces are restored afterwards in every module that imported them."""

from __future__ import annotations

import sys
from importlib import import_module
from unittest import mock

from tableformat.commit import transaction
from tableformat.maintenance.compaction import compact
from tableformat.testing.replacing import replaced


def test_a_module_that_is_loaded_meanwhile_has_the_original_afterwards() -> None:
    """Modules are loaded when they are first needed, which is often inside a test."""
    original = transaction.commit_change
    name = "tableformat.maintenance.rewrite_manifests"
    with mock.patch.dict(sys.modules):
        sys.modules.pop(name, None)
        with replaced(original, lambda *_, **__: None):
            loaded = import_module(name)
            assert vars(loaded)["commit_change"] is not original
            assert vars(compact)["commit_change"] is not original
        assert vars(loaded)["commit_change"] is original
        assert vars(compact)["commit_change"] is original
