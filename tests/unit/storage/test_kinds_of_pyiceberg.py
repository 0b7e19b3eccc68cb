"""Recognizing PyIceberg's REST client and its two kinds of FileIO without importing them (decision 37)."""

from __future__ import annotations

import sys

import pytest
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io.fsspec import FsspecFileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from tableformat.catalogs.views.rest_views import RestViews
from tableformat.catalogs.views.view_store import views_of
from tableformat.commit.rest_catalog import is_rest
from tableformat.storage.arrow_io import is_arrow
from tableformat.storage.fsspec_io import is_fsspec


class OwnRestCatalog(RestCatalog):
    """A subclass that a user has written."""


@pytest.mark.parametrize("kind", [RestCatalog, OwnRestCatalog])
def test_rest_clients_are_known(kind: type[RestCatalog]) -> None:
    client = kind.__new__(kind)
    assert is_rest(client)
    assert isinstance(views_of(client), RestViews)


def test_others_are_not_and_nothing_is_before_the_import(monkeypatch: pytest.MonkeyPatch) -> None:
    others = NoopCatalog("none"), PyArrowFileIO()
    assert (is_rest(others[0]), is_fsspec(others[1])) == (False, False)
    assert is_fsspec(FsspecFileIO({}))
    assert (is_arrow(others[1]), is_arrow(FsspecFileIO({}))) == (True, False)
    monkeypatch.delitem(sys.modules, "pyiceberg.catalog.rest")
    monkeypatch.delitem(sys.modules, "pyiceberg.io.fsspec")
    monkeypatch.delitem(sys.modules, "pyiceberg.io.pyarrow")
    assert (is_rest(others[0]), is_fsspec(others[1]), is_arrow(others[1])) == (False, False, False)
