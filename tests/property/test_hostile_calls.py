"""Every public method with arguments that no caller intends: an error of the library, or a result, and nothing else.

A rejected call changes no row and no name. `make soak` runs 10^5 calls.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import reprlib
import shutil
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from example_counts import examples
from fast_lake import MEMORY
from hostile_values import SCHEMA, SourceFailedError, argument, rows
from hypothesis import given, settings
from hypothesis import strategies as st
from new_lakes import new_lake
from soak_figures import count

import tableformat as tf
from tableformat.errors import PropertyWithoutEffectWarning
from tableformat.maintenance.compaction.compaction_plan import CompactionKeywords
from tableformat.maintenance.maintenance import Maintenance
from tableformat.operations.options import CommitKeywords

CALLS_PER_EXAMPLE: Final = 20
LONG: Final = ("soak", "round")
"""Profiles in which this test runs its full number of examples."""
METHODS: Final = {
    "Catalog": tf.Catalog,
    "Table": tf.Table,
    "Scan": tf.Scan,
    "Transaction": tf.Transaction,
    "Changes": tf.Changes,
    "Maintenance": Maintenance,
}
DOORS: Final = {"open_catalog": tf.open_catalog, "read_metadata": tf.read_metadata}
MORE: Final = {
    ("Table", "commit"): tuple(CommitKeywords.__annotations__),
    ("Maintenance", "options"): tuple(CompactionKeywords.__annotations__),
}
"""The keywords that are annotated together."""
NOT_CALLED: Final = {
    ("Catalog", "close"): "ends the catalog that the other calls go to",
    ("Table", "update_schema"): "returns PyIceberg's builder",
    ("Table", "update_spec"): "returns PyIceberg's builder",
    ("Table", "transaction"): "has its own target",
}


VERSIONS: Final = st.sampled_from(("2", "3"))


@cache
def calls() -> tuple[tuple[str, str], ...]:
    methods = [
        (owner, name)
        for owner, kind in METHODS.items()
        for name, _ in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and (owner, name) not in NOT_CALLED
    ]
    return (*methods, *(("", name) for name in DOORS))


@dataclass(frozen=True)
class HostileCall:
    """A method of an owner, and arguments by name."""

    owner: str
    name: str
    arguments: dict[str, Any]

    def __repr__(self) -> str:
        """A text of limited depth, because printing a list of 2,000 levels in full raises an error in the printer."""
        return f"{self.owner}.{self.name}({reprlib.repr(self.arguments)})"

    def _repr_pretty_(self, printer: Any, is_cycle: bool) -> None:
        """The text that Hypothesis prints."""
        printer.text(repr(self))


@st.composite
def hostile_call(draw: st.DrawFn) -> HostileCall:
    owner, name = draw(st.sampled_from(calls()))
    function = getattr(METHODS[owner], name) if owner else DOORS[name]
    arguments = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if parameter.default is parameter.empty or draw(st.integers(0, 2)) == 0:
            arguments[parameter.name] = draw(argument(parameter.name))
    for more in MORE.get((owner, "options" if name in ("compact", "plan_compaction") else "commit"), ()):
        takes = inspect.signature(function).parameters.keys() & {"commit", "options"}
        if takes and name not in ("to_pandas",) and draw(st.integers(0, 4)) == 0:
            arguments[more] = draw(argument(more))
    return HostileCall(owner, name, arguments)


class Template:
    """A lake that is created once and restored by copying, to the same location, because metadata has absolute paths.

    It has a table with a branch, a tag, two kinds of deletes and a partition by time.
    """

    def __init__(self, directory: Path, version: str) -> None:
        self.lake, self._original = directory / f"lake{version}", directory / f"original{version}"
        with new_lake(self.lake) as catalog:
            table = catalog.create_table(
                "db.t", SCHEMA, key=["id", "at"], partition_by=["day(at)"], properties={"format-version": version}
            )
            table.append(rows(1, 2, 3))
            table.create_branch("ingest").create_tag("tag")
            table.delete_prefix({"id": 2})
        shutil.copytree(self.lake, self._original)

    @contextlib.contextmanager
    def world(self) -> Iterator[World]:
        """The original lake, without the changes of earlier calls."""
        shutil.rmtree(self.lake, ignore_errors=True)
        shutil.copytree(self._original, self.lake)
        with tf.open_catalog(str(self.lake)) as catalog:
            yield World(catalog, self.lake)


class World:
    """The table of a template, and what its rows are."""

    def __init__(self, catalog: tf.Catalog, lake: Path) -> None:
        self.catalog = catalog
        self.lake = lake
        self.table = catalog.load_table("db.t")

    def state(self) -> frozenset[tuple[object, ...]]:
        """The state that determines the rows: the metadata that the catalog references, and the existing files.

        Files never change (FM-1), so rows are read only if this state differs; reading them took half of the time.
        """
        files = (
            (entry.path, entry.stat().st_size, entry.stat().st_mtime_ns)
            for folder, _, _ in os.walk(self.lake)
            for entry in os.scandir(folder)
            if entry.is_file() and not entry.name.startswith("catalog.db")
        )
        return frozenset([*files, *self._named()])

    def names(self) -> set[tuple[object, ...]]:
        """The tables and views of the catalog."""
        return {each[:2] for each in self._named()}

    def _named(self) -> list[tuple[object, ...]]:
        with contextlib.closing(sqlite3.connect(self.lake / "catalog.db")) as database:
            named = database.execute("SELECT table_namespace, table_name, metadata_location FROM iceberg_tables")
            return named.fetchall()

    def read(self) -> list[str]:
        """The rows as text, so that NaN equals itself and a year outside Python's range raises no error."""
        if not self.catalog.table_exists("db.t"):
            return []
        found = self.catalog.load_table("db.t").scan().to_arrow()
        ages = [field.type if not pa.types.is_timestamp(field.type) else pa.int64() for field in found.schema]
        plain = found.cast(
            pa.schema([pa.field(field.name, age) for field, age in zip(found.schema, ages, strict=True)])
        )
        return sorted(map(repr, plain.to_pylist()))

    def call(self, owner: str, name: str, arguments: dict[str, Any]) -> None:
        if not owner:
            result = DOORS[name](**arguments)
            if isinstance(result, tf.Catalog):
                result.close()
            return
        if owner == "Transaction":
            with self.table.transaction() as transaction:
                getattr(transaction, name)(**arguments)
            return
        target = {
            "Catalog": lambda: self.catalog,
            "Table": lambda: self.table,
            "Scan": self.table.scan,
            "Changes": self.table.changes,
            "Maintenance": lambda: self.table.maintenance,
        }[owner]()
        function = getattr(target, name)
        used = dict(arguments)
        positional = [
            used.pop(parameter.name)
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind is parameter.POSITIONAL_ONLY and parameter.name in used
        ]
        consume(function(*positional, **used))


def consume(result: Any) -> None:
    """Read lazy results, because their errors are raised while reading."""
    if isinstance(result, tf.Scan | tf.Changes):
        repr(result)
        result.to_arrow()
        result.count()
    elif isinstance(result, pa.RecordBatchReader):
        result.read_all()
    elif isinstance(result, Iterator):
        list(result)


@pytest.fixture(scope="module")
def templates() -> Iterator[dict[str, Template]]:
    with tempfile.TemporaryDirectory(prefix="lake-", dir=MEMORY if MEMORY.is_dir() else None) as directory:
        yield {version: Template(Path(directory), version) for version in ("2", "3")}


@settings(max_examples=examples(1 if settings.get_current_profile_name() in LONG else 0.05))
@given(calls=st.lists(hostile_call(), min_size=CALLS_PER_EXAMPLE, max_size=CALLS_PER_EXAMPLE), version=VERSIONS)
def test_hostile_calls_raise_library_errors_and_change_no_row(
    calls: list[HostileCall],
    version: str,
    templates: dict[str, Template],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with (
        templates[version].world() as world,
        warnings.catch_warnings(),
        contextlib.chdir(tmp_path_factory.getbasetemp()),
    ):
        warnings.simplefilter("ignore", PropertyWithoutEffectWarning)
        # A warning of PyIceberg about the scheme of a location; the call is rejected after it.
        warnings.filterwarnings("ignore", "No preferred file implementation", UserWarning)
        before, rows_before, names_before = world.state(), world.read(), world.names()
        for call in calls:
            count("calls")
            try:
                world.call(call.owner, call.name, call.arguments)
                is_refused = False
            except (tf.TableFormatError, SourceFailedError):
                count("refused calls")
                is_refused = True
            except Exception as error:
                error.add_note(f"called {call!r}")
                raise
            after = world.state()
            if after != before:
                rows_after, names_after = world.read(), world.names()
                assert not is_refused or rows_after == rows_before, f"{call!r} was refused and changed rows"
                assert not is_refused or names_after == names_before, f"{call!r} was refused and changed names"
                before, rows_before, names_before = after, rows_after, names_after


def test_every_public_method_is_called() -> None:
    """A new method is called automatically, and each method that is not called has a reason."""
    assert {(owner, name) for owner, name in NOT_CALLED if not hasattr(METHODS[owner], name)} == set()
    assert {owner for owner, _ in calls()} == {*METHODS, ""}


def test_too_many_arguments_raise_type_error() -> None:
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        tf.read_metadata("x", "y")  # type: ignore[arg-type, call-arg]
