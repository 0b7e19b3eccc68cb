"""Views as catalogs store them; tests/spark/test_spark_views.py tests them in Spark."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from pyiceberg.view import View
from sqlalchemy import text

from tableformat import Catalog, open_catalog
from tableformat.catalogs.views.view_metadata import ViewDefinition
from tableformat.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidArgumentError,
    MovedLakeError,
    NamespaceNotFoundError,
    TableNotFoundError,
    UnsupportedFeatureError,
    ViewNotFoundError,
)

SCHEMA = pa.schema([pa.field("a", pa.int64(), nullable=False)])
NAME = ("db", "v")


def definition(sql: str, dialect: str = "spark", column: str = "b") -> ViewDefinition:
    schema = Schema(NestedField(0, column, LongType(), doc="counted"))
    return ViewDefinition(sql=sql, dialect=dialect, schema=schema, default_namespace=("db",))


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """The table `db.t` and the view `db.v`."""
    with new_lake(tmp_path / "lake") as opened:
        opened.create_table("db.t", SCHEMA, key=["a"])
        opened.views.create(NAME, definition("SELECT a FROM t"), {"comment": "c"})
        yield opened


def location_of(catalog: Catalog) -> str:
    return catalog.load_table("db.t").iceberg.metadata_location


def loaded(catalog: Catalog) -> View:
    view = catalog.views.load(NAME)
    assert view is not None
    return view


def metadata_files(lake: Path) -> list[dict[str, Any]]:
    files = sorted(lake.glob("db/view-*/metadata/*"), key=lambda file: file.name)
    return [json.loads(gzip.decompress(file.read_bytes())) for file in files]


def test_view_metadata_follows_iceberg_view_spec_and_jdbc_catalog(catalog: Catalog, tmp_path: Path) -> None:
    """SQ-26."""
    (stored,) = metadata_files(tmp_path / "lake")
    (version,) = stored["versions"]
    assert {name: version[name] for name in ("version-id", "schema-id", "default-namespace", "representations")} == {
        "version-id": 1,
        "schema-id": 0,
        "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": "SELECT a FROM t", "dialect": "spark"}],
    }
    assert "default-catalog" not in version, "the catalog that has the view, under whatever name"
    assert stored["schemas"][0]["fields"] == [
        {"id": 1, "name": "b", "required": False, "type": "long", "doc": "counted"}
    ]
    assert (stored["format-version"], stored["current-version-id"], stored["properties"]) == (1, 1, {"comment": "c"})
    with catalog.iceberg.engine.connect() as connection:  # type: ignore[attr-defined]
        rows = connection.execute(text("SELECT table_name, iceberg_type FROM iceberg_tables ORDER BY 1")).all()
    assert [tuple(row) for row in rows] == [("t", "TABLE"), ("v", "VIEW")]
    with open_catalog(str(tmp_path / "lake")) as other:
        assert other.list_views() == other.list_views("db") == ["db.v"]
        assert other.list_tables() == ["db.t"]
        assert loaded(other).metadata == loaded(catalog).metadata


def test_view_versions_are_kept_reused_and_limited(catalog: Catalog, tmp_path: Path) -> None:
    """SQ-27."""
    view = catalog.views.replace(loaded(catalog), definition("SELECT a + 1 FROM t"), {})
    assert [each.version_id for each in view.versions] == [1, 2]
    assert len(view.metadata.schemas) == 1
    back = catalog.views.replace(view, definition("SELECT a FROM t"), {})
    assert back.current_version().version_id == 1
    assert [each.version_id for each in back.history()] == [1, 2, 1]
    same = catalog.views.replace(back, definition("SELECT a FROM t"), {"k": "1"})
    assert [each.version_id for each in same.history()] == [1, 2, 1]
    assert same.properties == {"k": "1"}
    few = catalog.views.replace(same, definition("SELECT 3", column="d"), {"version.history.num-entries": "2"})
    assert ([each.version_id for each in few.versions], [each.version_id for each in few.history()]) == ([2, 3], [3])
    assert few.schema().find_field("d").field_id == 1
    assert len(metadata_files(tmp_path / "lake")) == 2, "the current one, and the one before for who reads it now"
    with pytest.raises(InvalidArgumentError, match="whole number"):
        catalog.views.replace(few, definition("SELECT 4"), {"version.history.num-entries": "none"})


def test_replace_view_does_not_silently_drop_other_dialects(catalog: Catalog) -> None:
    """SQ-27."""
    with pytest.raises(InvalidArgumentError, match="SQL for spark"):
        catalog.views.replace(loaded(catalog), definition("SELECT a FROM t", "trino"), {})
    dropped = {"replace.drop-dialect.allowed": "true"}
    view = catalog.views.replace(loaded(catalog), definition("SELECT a FROM t", "trino"), dropped)
    assert view.sql_for("spark") is None


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (lambda lake: lake.create_table("db.v", SCHEMA), AlreadyExistsError, "view 'db.v'"),
        (lambda lake: lake.create_table("db.v", SCHEMA, exist_ok=True), AlreadyExistsError, "view 'db.v'"),
        (lambda lake: lake.register_table("db.v", location_of(lake)), AlreadyExistsError, "view 'db.v'"),
        (lambda lake: lake.rename_table("db.t", "db.v"), AlreadyExistsError, "view 'db.v'"),
        (lambda lake: lake.views.create(("db", "t"), definition("1"), {}), AlreadyExistsError, "'db.t'"),
        (lambda lake: lake.views.create(NAME, definition("1"), {}), AlreadyExistsError, "'db.v'"),
        (lambda lake: lake.views.rename(NAME, ("db", "t")), AlreadyExistsError, "'db.t'"),
        (lambda lake: lake.views.rename(("db", "t"), ("db", "u")), ViewNotFoundError, "'db.t'"),
        (lambda lake: lake.views.create(("dc", "v"), definition("1"), {}), NamespaceNotFoundError, "'dc'"),
        (lambda lake: lake.load_table("db.v"), TableNotFoundError, "is a view"),
        (lambda lake: lake.drop_view("db.w"), ViewNotFoundError, "db.v"),
        (lambda lake: lake.drop_view("db.t"), ViewNotFoundError, "'db.t'"),
        (lambda lake: lake.drop_table("db.v"), TableNotFoundError, "is a view"),
        (lambda lake: lake.drop_namespace("db"), InvalidArgumentError, "views: db.v"),
        (lambda lake: lake.list_views("dc"), NamespaceNotFoundError, "db"),
    ],
)
def test_tables_and_views_share_one_namespace(
    catalog: Catalog, change: Callable[[Catalog], object], error: type[Exception], match: str
) -> None:
    """SQ-26."""
    with pytest.raises(error, match=match):
        change(catalog)
    assert (catalog.list_tables(), catalog.list_views()) == (["db.t"], ["db.v"])


def test_view_metadata_path_property_is_rejected(catalog: Catalog) -> None:
    for properties in ({"write.metadata.path": "/elsewhere"}, {"write.metadata.compression-codec": "none"}):
        with pytest.raises(UnsupportedFeatureError, match="set a location"):
            catalog.views.create(("db", "w"), definition("1"), properties)
        with pytest.raises(UnsupportedFeatureError, match="set a location"):
            catalog.views.replace(loaded(catalog), definition("2"), properties)
    assert catalog.list_views("db") == ["db.v"]


def test_concurrent_view_replacement_conflicts(catalog: Catalog, tmp_path: Path) -> None:
    mine, theirs = loaded(catalog), loaded(catalog)
    catalog.views.replace(theirs, definition("SELECT 2"), {})
    with pytest.raises(CommitConflictError):
        catalog.views.replace(mine, definition("SELECT 1"), {})
    assert len(metadata_files(tmp_path / "lake")) == 2


def test_rename_and_drop_view_with_its_files(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_namespace("db.deep")
    catalog.views.replace(loaded(catalog), definition("SELECT 2"), {})
    catalog.views.rename(NAME, ("db", "deep", "w"))
    assert catalog.list_views() == ["db.deep.w"]
    catalog.drop_view("db.deep.w")
    assert catalog.list_views() == metadata_files(tmp_path / "lake") == []


def test_views_of_a_moved_lake(catalog: Catalog, tmp_path: Path) -> None:
    """LK-3, LK-4, LK-6."""
    catalog.close()
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    before = metadata_files(tmp_path / "lake")
    shutil.move(tmp_path / "lake", tmp_path / "moved")
    with open_catalog(str(tmp_path / "moved")) as moved:
        view = loaded(moved)
        with pytest.raises(MovedLakeError):
            moved.views.replace(view, definition("SELECT 2"), {})
        moved.relocate()
        assert loaded(moved).location() == f"file://{tmp_path}/moved/{view.location().split('/lake/')[1]}"
        moved.views.replace(loaded(moved), definition("SELECT 2"), {})
    shutil.copytree(tmp_path / "copy", tmp_path / "lake")
    with open_catalog(str(tmp_path / "copy")) as copy:
        assert loaded(copy).metadata.versions == view.metadata.versions
        copy.drop_view("db.v")
    assert metadata_files(tmp_path / "lake") == before


def test_backup_contains_views(catalog: Catalog, tmp_path: Path) -> None:
    """LK-6."""
    catalog.relocate(tmp_path / "backup")
    with open_catalog(str(tmp_path / "backup")) as backup:
        view = loaded(backup)
        assert view.location().startswith(f"file://{tmp_path}/backup/db/view-")
        assert view.metadata.versions == loaded(catalog).metadata.versions
        catalog.views.replace(loaded(catalog), definition("SELECT 2"), {})
        catalog.relocate(tmp_path / "backup")
        assert loaded(backup).metadata == view.metadata
        catalog.relocate(tmp_path / "backup", replace=True)
        assert loaded(backup).metadata.versions == loaded(catalog).metadata.versions


def test_older_database_layout_does_not_support_views(tmp_path: Path) -> None:
    with new_lake(tmp_path / "lake") as made, made.iceberg.engine.begin() as connection:  # type: ignore[attr-defined]
        connection.execute(text("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type"))
    with open_catalog(str(tmp_path / "lake")) as old:
        assert old.list_views() == []
        with pytest.raises(UnsupportedFeatureError, match="lacks the column iceberg_type"):
            old.views.create(NAME, definition("1"), {})
