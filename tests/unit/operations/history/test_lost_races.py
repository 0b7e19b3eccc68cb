"""Changes of metadata alone, whose request to the catalog is overtaken by another commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from commit_tables import FAST_RETRIES
from pyiceberg.types import LongType

import tableformat as tf
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.errors import CommitConflictError

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", SCHEMA, key=["id"], properties=FAST_RETRIES)
    made.append(pa.table({"id": [1]}, schema=SCHEMA))
    return made


@contextmanager
def overtaken(table: tf.Table, *others: Callable[[tf.Table], Any]) -> Iterator[None]:
    """Others commit after the metadata of the next commits was written, and before it is made current."""
    waiting, point_to = list(others), EmbeddedCatalog.point_to

    def late(self: EmbeddedCatalog, *arguments: Any, **options: Any) -> None:
        if waiting:
            other = waiting.pop()
            assert table.catalog is not None
            other(table.catalog.load_table(table.name))
        point_to(self, *arguments, **options)

    with mock.patch.object(EmbeddedCatalog, "point_to", late):
        yield
    assert not waiting


def add_column(table: tf.Table, name: str) -> None:
    with table.update_schema() as update:
        update.add_column(name, LongType())


CHANGES: dict[str, tuple[Callable[[tf.Table], Any], Callable[[tf.Table], Any]]] = {
    "properties": (lambda table: table.set_properties(owner="me"), lambda table: table.properties["owner"]),
    "tag": (lambda table: table.create_tag("loaded"), lambda table: table.scan(tag="loaded").count()),
    "branch": (lambda table: table.create_branch("b"), lambda table: table.scan(branch="b").count()),
    "schema": (lambda table: add_column(table, "more"), lambda table: table.schema.field("more")),
    "upgrade": (lambda table: table.upgrade(), lambda table: table.metadata.format_version == 3),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_lost_a_race_against_appends_is_made(table: tf.Table, change: str) -> None:
    """CP-26: beside a stream every change of a property or a tag would be one try against the next append."""
    make, is_made = CHANGES[change]
    handle, numbers = table.catalog.load_table("db.t"), iter(range(2, 9))  # type: ignore[union-attr]

    def append(other: tf.Table) -> None:
        other.append(pa.table({"id": [next(numbers)]}, schema=SCHEMA))

    with overtaken(table, append, append):
        make(handle)
    assert is_made(table.refresh())
    assert table.scan().count() == 3


def test_a_change_whose_ground_has_changed_is_a_conflict_at_once(table: tf.Table) -> None:
    handle = table.catalog.load_table("db.t")  # type: ignore[union-attr]
    with (
        overtaken(table, lambda other: add_column(other, "theirs")),
        pytest.raises(CommitConflictError, match=r"another commit changed db\.t meanwhile.*Nothing was changed"),
    ):
        add_column(handle, "ours")
    assert table.refresh().schema.names == ["id", "theirs"]


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (lambda other: other.create_branch("b"), "b was created concurrently"),
        (lambda other: other.set_properties(owner="me"), "lost the race"),
    ],
)
def test_a_constraint_that_lost_a_race_is_not_tried_again(
    table: tf.Table, other: Callable[[tf.Table], Any], told: str
) -> None:
    """CK-8: a branch that came meanwhile may have rows that break it, and no requirement names it to every catalog."""
    handle = table.catalog.load_table("db.t")  # type: ignore[union-attr]
    with (
        overtaken(table, other),
        pytest.raises(CommitConflictError, match=rf"{told}.*Nothing was changed"),
    ):
        handle.add_check("positive", "id > 0")
    assert not [name for name in table.refresh().properties if name.startswith("tableformat.check")]
