"""`open_catalog` of `file:` URIs, and of names that directories have too."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tableformat as tf
from tableformat.cli.main import app
from tableformat.errors import InvalidArgumentError


@pytest.mark.parametrize("prefix", ["file:", "file://", "file://localhost", "FILE:"])
def test_a_file_uri_is_the_directory_that_it_names(
    tmp_path: Path, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tf.open_catalog(str(tmp_path / "lake")).create_namespace("db")
    assert tf.open_catalog(f"{prefix}{tmp_path}/lake").list_namespaces() == ["db"]
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


@pytest.mark.parametrize("prefix", ["file:", "file://"])
def test_the_command_line_and_a_pickle_open_the_same_directory(tmp_path: Path, prefix: str) -> None:
    catalog = tf.open_catalog(f"{prefix}{tmp_path}/lake")
    catalog.create_namespace("db")
    assert pickle.loads(pickle.dumps(catalog)).list_namespaces() == ["db"]
    result = CliRunner().invoke(app, ["--catalog", f"{prefix}{tmp_path}/lake", "query", "SELECT 7 AS n"])
    assert (result.exit_code, "7" in result.output) == (0, True)


@pytest.mark.parametrize("uri", ["file:lake", "file://lake", "file://host/lake", "file:", "file:////lake"])
def test_a_uri_without_an_absolute_path_is_refused(tmp_path: Path, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgumentError, match="no absolute path"):
        tf.open_catalog(uri)
    assert not list(tmp_path.iterdir())


def test_a_percent_encoded_uri_is_refused_and_makes_no_directory(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="my lake"):
        tf.open_catalog(f"file://{tmp_path}/my%20lake")
    assert not list(tmp_path.iterdir())


def test_options_define_a_catalog_beside_a_directory_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    options = {"uri": f"sqlite:///{tmp_path}/other.db", "warehouse": str(tmp_path / "warehouse")}
    tf.open_catalog("mine", type="sql", **options).create_namespace("db")
    assert not list((tmp_path / "mine").iterdir())
