"""How `open_catalog` interprets a name or a path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.utils.config import Config

from tableformat.catalogs.backends import open_backend
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.errors import CatalogNotFoundError, InvalidArgumentError, UnknownOptionError


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`prod` is configured, the working directory is empty."""
    (tmp_path / ".pyiceberg.yaml").write_text(
        f"catalog:\n  prod:\n    type: sql\n    uri: sqlite:///{tmp_path}/prod.db\n    warehouse: file://{tmp_path}/prod\n"
    )
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.mark.parametrize("name", ["lake/", "./lake", "deep/er/lake", "."])
def test_path_with_a_separator_is_created(configured: Path, name: str) -> None:
    catalog = open_backend(name)
    assert isinstance(catalog, EmbeddedCatalog)
    assert (configured / name / "catalog.db").is_file()
    assert catalog.properties["warehouse"] == f"file://{os.path.normpath(configured / name)}"


def test_file_uri_and_path_objects(configured: Path) -> None:
    first = open_backend(f"file://{configured}/lake")
    first.create_namespace("db")
    assert open_backend(configured / "lake").list_namespaces() == [("db",)]
    assert isinstance(open_backend(Path("prod")), EmbeddedCatalog), "a path object is never a name"


def test_configured_catalog_name_takes_precedence_over_path(configured: Path) -> None:
    (configured / "prod").mkdir()
    catalog = open_backend("prod")
    assert isinstance(catalog, SqlCatalog)
    assert not isinstance(catalog, EmbeddedCatalog)
    assert catalog.name == "prod"


def test_unknown_catalog_name_creates_nothing(configured: Path) -> None:
    with pytest.raises(CatalogNotFoundError):
        open_backend("stage")
    with pytest.raises(CatalogNotFoundError):
        open_backend("prd")
    assert list(configured.iterdir()) == []


def test_options_can_define_a_catalog(configured: Path) -> None:
    catalog = open_backend("mine", type="sql", uri=f"sqlite:///{configured}/mine.db")
    assert (type(catalog), catalog.name) == (SqlCatalog, "mine")


def test_object_store_requires_catalog_file(configured: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="pass catalog_file="):
        open_backend("s3://bucket/lake")
    catalog = open_backend(
        "s3://bucket/lake/", catalog_file="here/catalog.db", **{"s3.endpoint": "http://localhost:9000"}
    )
    assert isinstance(catalog, EmbeddedCatalog)
    assert (configured / "here" / "catalog.db").is_file()
    assert catalog.properties["warehouse"] == "s3://bucket/lake"
    assert catalog.properties["s3.endpoint"] == "http://localhost:9000"


def test_unknown_and_conflicting_options_are_rejected(configured: Path) -> None:
    with pytest.raises(UnknownOptionError):
        open_backend("lake/", catalog_fil="x")
    with pytest.raises(InvalidArgumentError, match="Pass only one of them"):
        open_backend("lake/", catalog_file="x", uri="sqlite:///y")
    assert list(configured.iterdir()) == []


@pytest.mark.parametrize("uri", ["https://catalog.example.com", "thrift://hive:9083"])
def test_address_of_a_service_is_not_a_path(configured: Path, uri: str) -> None:
    with pytest.raises(InvalidArgumentError, match="pass a name and the address"):
        open_backend(uri)
