"""Makes the tables of the corpus in a directory, each with the result expected from a reader and the rules that decide
it.

    DIR/README.md                                          how to run a reader over it
    DIR/iceberg/equality-deletes/<title>.v2.json           a case: see `WrittenCase`
    DIR/range-deletes/...                                  cases that need the rules of this format
    DIR/tables/...                                         the tables, with absolute paths in their metadata
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tableformat.catalogs.catalog import Catalog
from tableformat.catalogs.open_catalog import open_catalog
from tableformat.corpus.cases import CorpusCase
from tableformat.corpus.rules import ICEBERG_RULES, Rule
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.content_file import DeleteFile
from tableformat.storage.location import local_path
from tableformat.table import Table
from tableformat.testing.table_builder import build
from tableformat.testing.table_files import live_files

ICEBERG: Final = "iceberg"
"""Cases that the Apache Iceberg specification decides: every reader of Iceberg should pass them."""
RANGE_DELETES: Final = "range-deletes"
"""Cases of this format's own rules, and tables with range deletes: other readers should refuse them."""
_TABLES: Final = "tables"
_NAMESPACE: Final = "corpus"
_RANGE: Final = "range"


@dataclass(frozen=True, slots=True)
class WrittenCase:
    """A table on disk, and the result expected from a reader."""

    id: str
    title: str
    part: str
    """`iceberg` or `range-deletes`."""
    format_version: int
    deletes: tuple[str, ...]
    """The kinds of live deletes: `position`, `equality`, `deletion-vector`, `range`."""
    rules: tuple[Rule, ...]
    """The rules that decide the case."""
    note: str | None
    """The purpose of the case."""
    metadata: Path
    """Absolute path of the table's metadata file."""
    columns: Mapping[str, Any]
    """Iceberg type by name, in the order of the final schema."""
    rows: tuple[tuple[Any, ...], ...] | None
    """In the form of docs/reference/corpus.md, in any order; None if a reader has to refuse the table."""

    def to_dict(self, directory: Path) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "part": self.part,
            "format_version": self.format_version,
            "deletes": list(self.deletes),
            "decided_by": [rule.to_dict() for rule in self.rules],
            "note": self.note,
            "metadata": self.metadata.relative_to(directory).as_posix(),
            "columns": dict(self.columns),
            "rows": None if self.rows is None else [list(row) for row in self.rows],
            "is_refused": self.rows is None,
        }


def write_corpus(
    directory: Path,
    cases: Iterable[CorpusCase],
    rules: Mapping[str, Rule],
    *,
    progress: Callable[[int, str], None] | None = None,
) -> list[WrittenCase]:
    """Make the tables of the cases. The directory must be new or empty; otherwise InvalidArgumentError is raised and
    nothing is changed.

    `progress` gets the number of finished cases and the id of the next one.
    """
    directory = directory.resolve()
    if directory.exists() and any(directory.iterdir()):
        raise InvalidArgumentError(f"{directory} is not empty: the corpus must be written into a new directory.")
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    with open_catalog(str(directory / _TABLES)) as catalog:
        for done, case in enumerate(cases):
            if progress is not None:
                progress(done, case.id)
            made = _write_case(catalog, case, rules, done)
            path = directory / made.part / f"{made.id}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(made.to_dict(directory), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            written.append(made)
    (directory / "README.md").write_text(_readme(written), encoding="utf-8")
    return written


def read_written(directory: Path) -> list[WrittenCase]:
    """The cases that `write_corpus` wrote to a directory. Raises InvalidArgumentError if it has no cases."""
    directory = directory.resolve()
    files = [path for part in (ICEBERG, RANGE_DELETES) for path in sorted((directory / part).rglob("*.json"))]
    if not files:
        raise InvalidArgumentError(
            f"{directory} does not contain a corpus. Create one with `tableformat corpus write`."
        )
    return [_from_dict(json.loads(path.read_text("utf-8")), directory) for path in files]


def _write_case(catalog: Catalog, case: CorpusCase, rules: Mapping[str, Rule], number: int) -> WrittenCase:
    built = build(catalog, case.to_build(), identifier=f"{_NAMESPACE}.case_{number:03d}")
    if case.is_upgraded:
        built.table.upgrade(case.format_version)
    table = built.table
    deletes = _kinds_of_deletes(table)
    location = table.iceberg.metadata_location
    fields = table.metadata.schema().fields
    names = [field.name for field in fields]
    return WrittenCase(
        id=case.id,
        title=case.title,
        part=_part(case, deletes),
        format_version=case.format_version,
        deletes=deletes,
        rules=tuple(rules[rule_id] for rule_id in case.stated["rules"] if rule_id in rules),
        note=case.stated.get("note"),
        metadata=Path(local_path(location) or location),
        columns={field.name: json.loads(field.field_type.model_dump_json()) for field in fields},
        rows=None if case.is_unreadable else tuple(_values(row, names) for row in case.stated["rows"]),
    )


def _kinds_of_deletes(table: Table) -> tuple[str, ...]:
    return tuple(sorted({file.kind.value for file in live_files(table) if isinstance(file, DeleteFile)}))


def _part(case: CorpusCase, deletes: Sequence[str]) -> str:
    """A table belongs to Iceberg's part, unless it has range deletes or rules of this format decide it."""
    is_damaged = case.is_unreadable and not set(case.stated["rules"]) <= set(ICEBERG_RULES)
    is_our_own = is_damaged or not case.stated.get("iceberg", True)
    return RANGE_DELETES if _RANGE in deletes or is_our_own else ICEBERG


def _values(row: Any, names: Sequence[str]) -> tuple[Any, ...]:
    """A row of a case, a list or an object by column name, as a tuple in the order of the columns."""
    return tuple(row.get(name) for name in names) if isinstance(row, Mapping) else tuple(row)


def _from_dict(document: Mapping[str, Any], directory: Path) -> WrittenCase:
    rows = document["rows"]
    return WrittenCase(
        id=document["id"],
        title=document["title"],
        part=document["part"],
        format_version=document["format_version"],
        deletes=tuple(document["deletes"]),
        rules=tuple(Rule(**rule) for rule in document["decided_by"]),
        note=document["note"],
        metadata=directory / document["metadata"],
        columns=document["columns"],
        rows=None if rows is None else tuple(tuple(row) for row in rows),
    )


def _readme(written: Sequence[WrittenCase]) -> str:
    counts = {part: sum(case.part == part for case in written) for part in (ICEBERG, RANGE_DELETES)}
    return f"""# Corpus of delete semantics

{counts[ICEBERG]} tables that the Apache Iceberg specification decides (`{ICEBERG}/`) and {counts[RANGE_DELETES]} \
that need the rules of range deletes or
checksums (`{RANGE_DELETES}/`), which readers without them should refuse. A case is a JSON file: `metadata` is the
metadata file of its table, relative to this directory, `columns` name and Iceberg type, `rows` what a reader returns,
in no order; where `is_refused` is true, reading must fail. `decided_by` says which sentence decides it. The metadata
names this directory: it cannot be moved.

A reader is a command that gets paths of metadata files as arguments and prints one line for each:

    {{"reader": "MyEngine 1.0", "rows": [{{"id": 1, "v": "a"}}, ...]}}
    {{"error": "why the table cannot be read"}}

`reader` may be left out; lines that do not begin with a brace are passed over. Values are JSON's where it has them.
Else text: `float` and `double` "NaN", "Infinity", "-Infinity"; `decimal` "1.50"; dates and times ISO 8601; `uuid` with
hyphens; `binary` and `fixed` hexadecimal digits. A struct is an object, a list an array, a map an array of pairs.

    tableformat corpus check . --reader "COMMAND"
"""
