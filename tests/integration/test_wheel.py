"""The contents of a release, and its behaviour for a user: the wheel in an environment that has nothing of this
repository.

The environment uses the dependencies of the environment that runs the tests, so that no test needs a network.
TABLEFORMAT_WHEEL_DEPENDENCIES=registry installs them as a user would (`make test-wheel`).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest

from spark_ext.jar import spark_jars, spark_version
from tableformat.corpus.specification import RULE_DOCUMENTS

ROOT = Path(__file__).parents[2]
PACKAGES = ("tableformat", "spark_ext")
FROM_REGISTRY = os.environ.get("TABLEFORMAT_WHEEL_DEPENDENCIES") == "registry"
FIRST_SNIPPET = re.compile(r"```python\n(.*?\n)# ([^\n]*)\n```", re.DOTALL)

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Release:
    """The two files of a release, the wheel built of the sdist."""

    sdist: Path
    wheel: Path

    def names_in_wheel(self) -> set[str]:
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())


@pytest.fixture(scope="module")
def release(needs_java: None, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The release that `make dist` builds."""
    directory = tmp_path_factory.mktemp("dist")
    run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", directory, ROOT],
        env={**os.environ, "TABLEFORMAT_REQUIRE_JAR": "1"},
    )
    (sdist,), (wheel,) = directory.glob("*.tar.gz"), directory.glob("*.whl")
    return Release(sdist, wheel)


@pytest.fixture(scope="module")
def user_python(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment in which the wheel is installed."""
    directory = tmp_path_factory.mktemp("user") / "venv"
    venv.create(directory, with_pip=False)
    python = directory / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check"]
    if FROM_REGISTRY:
        run([*pip, "--constraint", ROOT / "constraints.txt", release.wheel])
    else:
        run([*pip, "--no-deps", "--no-index", release.wheel])
        # Found after the environment's own packages; links in that directory, such as to this repository, are not read.
        purelib = run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip()
        (Path(purelib) / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return python


def run(command: list[str | Path], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, cwd=cwd, env=env
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files_of_the_packages() -> set[str]:
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def specification() -> set[str]:
    """The files that `tableformat corpus` needs without a clone of the repository."""
    paths = [*(ROOT / "specs" / "corpus").glob("*.json"), *(ROOT / "specs" / name for name in RULE_DOCUMENTS)]
    return {f"tableformat/{path.relative_to(ROOT).as_posix()}" for path in paths}


def test_wheel_has_every_file_of_the_packages_and_the_jar(release: Release) -> None:
    """Including `py.typed`, without which type checkers treat everything as Any."""
    jar = f"spark_ext/java/jars/{spark_version(spark_jars()).jar_name}"
    packed = {name for name in release.names_in_wheel() if name.startswith(PACKAGES) and ".dist-info/" not in name}
    assert packed == files_of_the_packages() | specification() | {jar}
    assert {f"{package}/py.typed" for package in PACKAGES} <= packed
    with zipfile.ZipFile(release.wheel) as archive, zipfile.ZipFile(BytesIO(archive.read(jar))) as classes:
        assert "tableformat/spark/LakeCatalog.class" in classes.namelist()


def test_distributions_do_not_contain_tests(release: Release) -> None:
    """A clone has them, with the tables that they read."""
    with tarfile.open(release.sdist) as archive:
        folders = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"specs", *PACKAGES} <= folders
    assert "tests" not in folders
    assert not any(name.startswith("tests/") for name in release.names_in_wheel())


def test_distributions_contain_the_licence(release: Release) -> None:
    licences = {path.name for path in ROOT.glob("LICEN[CS]E*")}
    packed = {name for name in release.names_in_wheel() if ".dist-info/licenses/" in name}
    assert {name.rpartition("/")[2] for name in packed} == licences
    with tarfile.open(release.sdist) as archive:
        assert licences <= {Path(name).name for name in archive.getnames()}


def test_readme_snippet_runs_without_java(user_python: Path, tmp_path: Path) -> None:
    found = FIRST_SNIPPET.search((ROOT / "README.md").read_text())
    assert found is not None, "the first snippet ends with a comment that tells what it prints"
    snippet, stated = found.groups()
    where = (
        "import spark_ext\nfrom tableformat.demo.java_runtime import find_java\n"
        "print(tf.__file__, spark_ext.__file__, find_java())\n"
    )
    environment = {"PATH": str(user_python.parent), "HOME": str(tmp_path)}
    *_, printed, places = run([user_python, "-c", snippet + where], cwd=tmp_path, env=environment).splitlines()
    assert printed == stated
    library, spark, java = places.split()
    assert Path(library).is_relative_to(user_python.parents[1])
    assert Path(spark).is_relative_to(user_python.parents[1])
    assert java == "None"


USER = """
from typing import assert_type

import spark_ext
import tableformat as tf
from tableformat.demo.java_runtime import Java, find_java

catalog = tf.open_catalog("lake/")
assert_type(catalog, tf.Catalog)
table = catalog.load_table("db.t")
assert_type(table, tf.Table)
assert_type(table.snapshot_id, int | None)
assert_type(find_java(), Java | None)
catalog.load_table(1)
spark_ext.configure()
"""
MYPY = """
[mypy]
strict = true
[mypy-adlfs.*,duckdb.*,fsspec.*,numpy.*,pandas.*,polars.*,pyarrow.*,pydantic.*,pyiceberg.*,pyspark.*,sqlalchemy.*,sqlglot.*]
follow_imports = skip
"""
"""Other people's types would take most of the time, and are theirs."""


def test_type_checkers_find_the_types(user_python: Path, tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "mypy.ini").write_text(MYPY)
    command = [sys.executable, "-m", "mypy", "--python-executable", str(user_python), "--no-error-summary", "user.py"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    errors = [line for line in checked.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 2, checked.stdout + checked.stderr
    assert 'Argument 1 to "load_table" of "Catalog" has incompatible type "int"' in errors[0]
    assert 'Missing positional argument "builder" in call to "configure"' in errors[1]
