"""The reader of `specs/minimal-reader.md`, step by step: correct, slow, and independent of the library.

It was written from that page and imports nothing of `tableformat`, so that it does not repeat mistakes of the library.
A row is a Python dict, because the tables of the tests are small.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import math
import struct
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

DATA, POSITIONS, EQUALITY = 0, 1, 2
EXISTING, ADDED, DELETED = 0, 1, 2
PATH_ID, POSITION_ID = 2147483546, 2147483545
FOOTER_KEY = b"tableformat.range-deletes"


class UnreadableError(Exception):
    """A condition that the page calls an error. The message names the file."""


def require(condition: object, location: str, reason: str) -> None:
    if not condition:
        raise UnreadableError(f"{location}: {reason}")


def open_local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


# -- 1. Metadata to snapshot -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Metadata:
    """A metadata file, with the lookups that the steps need."""

    location: str
    json: Mapping[str, Any]

    @staticmethod
    def read(location: str) -> Metadata:
        stored = open_local(location).read_bytes()
        content = json.loads(gzip.decompress(stored) if stored.startswith(b"\x1f\x8b") else stored)
        require(content["format-version"] in (1, 2, 3), location, "format version")
        return Metadata(location, content)

    @property
    def schemas(self) -> dict[int, dict[str, Any]]:
        return {schema["schema-id"]: schema for schema in self.json["schemas"]}

    @property
    def specs(self) -> dict[int, list[dict[str, Any]]]:
        return {spec["spec-id"]: spec["fields"] for spec in self.json["partition-specs"]}

    def snapshot(self, snapshot_id: int) -> dict[str, Any]:
        return next(each for each in self.json["snapshots"] if each["snapshot-id"] == snapshot_id)


def read_table(location: str, *, snapshot_id: int | None = None, branch: str = "main") -> list[dict[str, Any]]:
    """The rows of a branch, with the table's columns; or of a snapshot, with the columns at that time."""
    metadata = Metadata.read(location)
    schema_id = metadata.json["current-schema-id"]
    if snapshot_id is not None:
        schema_id = metadata.snapshot(snapshot_id).get("schema-id", schema_id)
    elif branch in metadata.json.get("refs", {}):
        snapshot_id = metadata.json["refs"][branch]["snapshot-id"]
    else:
        return []
    entries = list(live_entries(metadata, metadata.snapshot(snapshot_id)))
    data_files = [entry for entry in entries if entry.content == DATA]
    deletes = [entry for entry in entries if entry.content != DATA]
    check_named_files(data_files, deletes)
    fields = metadata.schemas[schema_id]["fields"]
    return [row for entry in data_files for row in alive_rows(metadata, entry, deletes, fields)]


# -- 2 and 3. Manifest list and manifests ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A live file with its sequence number and its partition."""

    number: int
    spec_id: int
    file: Mapping[int, Any]
    """By field id."""

    @property
    def location(self) -> str:
        return str(self.file[100])

    @property
    def content(self) -> int:
        return int(self.file.get(134) or 0)

    @property
    def kind(self) -> tuple[int, str]:
        return self.content, str(self.file[101]).upper()

    @property
    def partition(self) -> tuple[Any, ...]:
        """DA-3: equal for all files of one partition."""
        return self.spec_id, tuple(same_bits(value) for value in (self.file.get(102) or {}).values())


def same_bits(value: Any) -> Any:
    return value.hex() if isinstance(value, float) else value


def read_avro(location: str) -> Iterator[dict[int, Any]]:
    """FM-16: records by field id, including nested records."""
    with open_local(location).open("rb") as source:
        reader = fastavro.reader(source)
        for record in reader:
            yield by_field_id(record, reader.writer_schema)


def by_field_id(record: Mapping[str, Any], schema: Any) -> dict[int, Any]:
    values: dict[int, Any] = {}
    for field in schema["fields"]:
        value, kinds = record[field["name"]], field["type"]
        kinds = kinds if isinstance(kinds, list) else [kinds]
        inner = next((kind for kind in kinds if isinstance(kind, dict) and kind["type"] == "record"), None)
        values[field["field-id"]] = by_field_id(value, inner) if inner and value is not None else value
    return values


def live_entries(metadata: Metadata, snapshot: Mapping[str, Any]) -> Iterator[Entry]:
    """DA-9: a new file without a number has the number of its manifest. FM-17: unknown entries are an error, not
    skipped."""
    for manifest in read_avro(snapshot["manifest-list"]):
        location, manifest_number = manifest[500], manifest.get(515) or 0
        for record in read_avro(location):
            if record[0] == DELETED:
                continue
            number = record.get(3)
            if number is None:
                require(record[0] == ADDED or manifest_number == 0, location, "an existing entry has no number")
                number = manifest_number
            entry = Entry(number, manifest[502], record[2])
            require((entry.content == DATA) == ((manifest.get(517) or 0) == 0), location, "entry in the wrong manifest")
            require(entry.kind in KINDS, entry.location, f"unknown kind {entry.kind}")
            yield entry


# -- 4 and 5. Kinds of deletes, and which may reach a data file --------------------------------------------------------

PARQUET_DATA = (DATA, "PARQUET")
POSITION_FILE = (POSITIONS, "PARQUET")
VECTOR = (POSITIONS, "PUFFIN")
EQUALITY_FILE = (EQUALITY, "PARQUET")
RANGE_FILE = (EQUALITY, "RANGE_DELETES_PARQUET")
KINDS = {PARQUET_DATA, POSITION_FILE, VECTOR, EQUALITY_FILE, RANGE_FILE}


def check_named_files(data_files: Iterable[Entry], deletes: Iterable[Entry]) -> None:
    """DA-1, DA-7: a delete file that names a data file is in the same partition."""
    partitions = {entry.location: entry.partition for entry in data_files}
    for delete in deletes:
        named = delete.file.get(143)
        if delete.content == POSITIONS and named in partitions:
            require(delete.partition == partitions[named], delete.location, f"names {named} of another partition")


def reaches(metadata: Metadata, delete: Entry, data: Entry) -> bool:
    """DA-1, DA-2, DA-3, DA-7, RD-2, RD-3: whether the delete reaches the data file, by sequence number and scope."""
    if delete.content == POSITIONS:
        named = delete.file.get(143)
        in_scope = delete.partition == data.partition and named in (None, data.location)
        return in_scope and data.number <= delete.number
    is_global = all(field["transform"] == "void" for field in metadata.specs[delete.spec_id])
    return (is_global or delete.partition == data.partition) and data.number < delete.number


# -- 10. Rows ----------------------------------------------------------------------------------------------------------


def alive_rows(
    metadata: Metadata, data: Entry, deletes: Iterable[Entry], fields: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    applying = [delete for delete in deletes if reaches(metadata, delete, data)]
    rows = DataRows.read(metadata, data)
    deleted = deleted_by_position(applying, data)
    for delete in applying:
        if delete.kind == EQUALITY_FILE:
            deleted |= deleted_by_equality(delete, rows)
        elif delete.kind == RANGE_FILE:
            deleted |= deleted_by_ranges(delete, data, rows)
    for position, row in enumerate(rows.rows):
        if position not in deleted:
            yield {field["name"]: rows.value(row, field) for field in fields}


@dataclass(frozen=True)
class DataRows:
    """The rows of a data file as stored, and the locations of its fields."""

    metadata: Metadata
    entry: Entry
    rows: list[dict[str, Any]]
    paths: dict[int, tuple[str, ...]]
    """For each field id outside of lists and maps, the names from the outermost struct to the field."""
    names: dict[int, str]
    """For each field id, the name in the file."""

    @staticmethod
    def read(metadata: Metadata, entry: Entry) -> DataRows:
        verified = metadata.json["properties"].get("read.parquet.page-checksum-verification") == "true"
        table = read_parquet(entry.location, is_verified=verified)
        fields = list(fields_of(table.schema))
        if not any(field_id is not None for field_id, _ in fields):
            mapping = json.loads(metadata.json["properties"].get("schema.name-mapping.default", "[]"))
            fields = list(mapped(fields, mapping))
        paths = {field_id: path for field_id, path in fields if field_id is not None}
        return DataRows(metadata, entry, table.to_pylist(), paths, {each: path[-1] for each, path in paths.items()})

    def value(self, row: Mapping[str, Any], field: Mapping[str, Any]) -> Any:
        """The value of a column of the schema. If the file lacks it: the partition's value, else the initial default,
        else null."""
        if field["id"] in self.paths:
            return self.typed(at_path(row, self.paths[field["id"]]), field["type"])
        return self.missing(field)

    def typed(self, value: Any, kind: Any) -> Any:
        """The value in the type of the schema. Nested fields are found by their ids."""
        if value is None:
            return None
        if isinstance(kind, str):
            return promoted(value, kind)
        if kind["type"] == "list":
            return [self.typed(each, kind["element"]) for each in value]
        if kind["type"] == "map":
            return [(self.typed(key, kind["key"]), self.typed(each, kind["value"])) for key, each in value]
        inside = {}
        for field in kind["fields"]:
            name = self.names.get(field["id"])
            inside[field["name"]] = self.missing(field) if name is None else self.typed(value.get(name), field["type"])
        return inside

    def missing(self, field: Mapping[str, Any]) -> Any:
        values = self.entry.file.get(102) or {}
        for partition_field in self.metadata.specs[self.entry.spec_id]:
            if partition_field["transform"] == "identity" and partition_field["source-id"] == field["id"]:
                return promoted(values[partition_field["field-id"]], field["type"])
        default = field.get("initial-default")
        require(default is not None or not field["required"], self.entry.location, f"lacks column {field['name']}")
        return from_json(default, field["type"])

    def key(self, row: Mapping[str, Any], field_ids: Iterable[int]) -> tuple[Any, ...]:
        """DA-6: the values of delete columns by field id, including columns that were dropped from the schema."""
        return tuple(canonical(self.delete_value(row, field_id)) for field_id in field_ids)

    def delete_value(self, row: Mapping[str, Any], field_id: int) -> Any:
        field = known_field(self.metadata, field_id)
        return self.value(row, field)


def known_field(metadata: Metadata, field_id: int) -> dict[str, Any]:
    """The field in the current schema, otherwise in the newest schema that has it."""
    newest_first = sorted(metadata.schemas, key=lambda each: (each == metadata.json["current-schema-id"], each))
    for schema_id in reversed(newest_first):
        for field in leaves(metadata.schemas[schema_id]["fields"]):
            if field["id"] == field_id:
                return field
    raise UnreadableError(f"{metadata.location}: no schema has field {field_id}")


def leaves(fields: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for field in fields:
        if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
            yield from leaves(field["type"]["fields"])
        yield field


def read_parquet(location: str, *, is_verified: bool = True) -> pa.Table:
    """DA-8, DA-11: an unreadable file raises an error that names it, and so does a page that differs from its checksum.
    Pages of delete files are always checked, pages of data files only if the table asks for it."""
    try:
        return pq.ParquetFile(open_local(location), page_checksum_verification=is_verified).read()
    except (OSError, pa.ArrowException) as error:
        raise UnreadableError(f"{location}: {error}") from error


def read_range_file(location: str) -> pa.Table:
    """RD-6: the file is Parquet except for its last four bytes. Older writers did not change these either."""
    try:
        data = open_local(location).read_bytes()
        plain = data[:-4] + b"PAR1" if data[-4:] == b"RDP1" else data
        return pq.ParquetFile(pa.BufferReader(plain), page_checksum_verification=True).read()
    except (OSError, pa.ArrowException) as error:
        raise UnreadableError(f"{location}: {error}") from error


def fields_of(schema: Iterable[pa.Field], above: tuple[str, ...] = ()) -> Iterator[tuple[int | None, tuple[str, ...]]]:
    """Field ids and paths of all fields. Elements of lists and entries of maps are included because of their names."""
    for field in schema:
        written = (field.metadata or {}).get(b"PARQUET:field_id")
        path = (*above, field.name)
        yield (None if written is None else int(written)), path
        if pa.types.is_struct(field.type):
            yield from fields_of(field.type, path)
        elif pa.types.is_list(field.type):
            yield from fields_of([field.type.value_field], path)
        elif pa.types.is_map(field.type):
            yield from fields_of([field.type.key_field, field.type.item_field], path)


def mapped(
    fields: Iterable[tuple[int | None, tuple[str, ...]]], mapping: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[int | None, tuple[str, ...]]]:
    """The fields of a file without field ids, with the ids that the name mapping assigns."""
    by_path: dict[tuple[str, ...], int] = {}

    def add(level: Iterable[Mapping[str, Any]], above: tuple[str, ...]) -> None:
        for field in level:
            for name in field["names"]:
                by_path[*above, name] = field["field-id"]
                add(field.get("fields", ()), (*above, name))

    add(mapping, ())
    for _, path in fields:
        yield by_path.get(path), path


def at_path(row: Any, path: Iterable[str]) -> Any:
    for name in path:
        row = None if row is None else row.get(name)
    return row


def promoted(value: Any, kind: str) -> Any:
    if kind.startswith("timestamp") and isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)
    if kind == "uuid" and isinstance(value, bytes):
        return uuid.UUID(bytes=value)
    return value


def from_json(value: Any, kind: Any) -> Any:
    """A default value, for the types in the tests."""
    if value is None or kind in ("boolean", "int", "long", "float", "double", "string"):
        return value
    parsers = {"date": dt.date, "time": dt.time, "timestamp": dt.datetime, "timestamptz": dt.datetime}
    return parsers[kind].fromisoformat(value)


# -- 6. Rows by position -----------------------------------------------------------------------------------------------


def deleted_by_position(applying: Iterable[Entry], data: Entry) -> set[int]:
    """DA-7: if there is a deletion vector, other position delete files of the data file are ignored."""
    vectors = [delete for delete in applying if delete.kind == VECTOR]
    require(len(vectors) <= 1, data.location, "two deletion vectors")
    if vectors:
        return read_vector(vectors[0])
    files = [delete for delete in applying if delete.kind == POSITION_FILE]
    return {position for delete in files for position in read_positions(delete, data.location)}


def read_positions(delete: Entry, data_location: str) -> Iterator[int]:
    """DA-10: the positions for exactly this path."""
    paths, positions = columns_by_id(read_parquet(delete.location), (PATH_ID, POSITION_ID), delete.location)
    return (position for path, position in zip(paths, positions, strict=True) if path == data_location)


def read_vector(delete: Entry) -> set[int]:
    begin, size, location = delete.file[144], delete.file[145], delete.location
    blob = open_local(location).read_bytes()[begin : begin + size]
    require(len(blob) == size >= 12 and struct.unpack(">I", blob[:4]) == (size - 8,), location, "length of the vector")
    require(blob[4:8] == bytes.fromhex("D1D33964"), location, "magic of the vector")
    require(struct.unpack(">I", blob[-4:]) == (zlib.crc32(blob[4:-4]),), location, "checksum of the vector")
    positions = set(BitMap64.deserialize(blob[8:-4]))
    require(len(positions) == delete.file[103], location, "number of positions")
    return positions


def columns_by_id(table: pa.Table, field_ids: Iterable[int], location: str) -> list[list[Any]]:
    """DA-6, DA-8: the values of columns, including columns in structs. A delete file without one of them is corrupt."""
    paths = {field_id: path for field_id, path in fields_of(table.schema) if field_id is not None}
    rows = table.to_pylist()
    wanted = list(field_ids)
    require(set(wanted) <= set(paths), location, f"lacks a column of {wanted}")
    return [[at_path(row, paths[field_id]) for row in rows] for field_id in wanted]


# -- 7 and 8. Values, and rows by equality -----------------------------------------------------------------------------


def canonical(value: Any) -> tuple[Any, ...]:
    """DA-4, DA-5, RD-4: a form of the value that Python compares according to these rules."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    if isinstance(value, str):
        return (1, value.encode())
    if isinstance(value, uuid.UUID):
        return (1, value.bytes)
    return (1, value)


def typed_columns(
    metadata: Metadata, field_ids: Iterable[int], columns: Iterable[Iterable[Any]]
) -> list[list[tuple[Any, ...]]]:
    kinds = [known_field(metadata, field_id)["type"] for field_id in field_ids]
    return [
        [canonical(None if value is None else promoted(value, kind)) for value in column]
        for kind, column in zip(kinds, columns, strict=True)
    ]


def deleted_by_equality(delete: Entry, data: DataRows) -> set[int]:
    """DA-2, DA-4: rows whose keys occur in the delete file."""
    field_ids = delete.file[135]
    columns = columns_by_id(read_parquet(delete.location), field_ids, delete.location)
    keys = set(zip(*typed_columns(data.metadata, field_ids, columns), strict=True))
    return {position for position, row in enumerate(data.rows) if data.key(row, field_ids) in keys}


# -- 9. Rows by ranges -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cut:
    """A position between keys (RD-1)."""

    values: tuple[Any, ...]
    is_after: bool

    def is_below(self, key: tuple[Any, ...]) -> bool:
        first = key[: len(self.values)]
        return first > self.values if self.is_after else first >= self.values

    @property
    def rank(self) -> tuple[Any, ...]:
        """A sort key for cuts of any length: every canonical value is between (-1,) and (3,)."""
        return (*self.values, (3,) if self.is_after else (-1,))


@dataclass(frozen=True)
class Span:
    lower: Cut
    upper: Cut
    number: int

    def covers(self, key: tuple[Any, ...]) -> bool:
        return self.lower.is_below(key) and not self.upper.is_below(key)


def deleted_by_ranges(delete: Entry, data: Entry, rows: DataRows) -> set[int]:
    """RD-2, RD-9: rows that a single newer span covers."""
    spans = [span for span in read_spans(rows.metadata, delete) if data.number < span.number]
    keys = (rows.key(row, delete.file[135]) for row in rows.rows)
    return {position for position, key in enumerate(keys) if any(span.covers(key) for span in spans)}


def read_spans(metadata: Metadata, delete: Entry) -> list[Span]:
    """RD-7, RD-8: the spans of the file, sorted and disjoint, each with its sequence number."""
    table, location = read_range_file(delete.location), delete.location
    stated = (table.schema.metadata or {}).get(FOOTER_KEY)
    require(stated is not None, location, "no statement in the footer")
    footer = json.loads(stated)
    require((footer["version"], footer["encoding-version"]) == (1, 1), location, "unknown version")
    field_ids = list(delete.file[135])
    require(footer["key-field-ids"] == field_ids, location, "other delete columns than its entry")
    columns = set(table.column_names)
    needed = {f"{side}_{name}" for side in ("lower", "upper") for name in (*range(len(field_ids)), "depth", "after")}
    require(needed | {"sequence_number"} <= columns, location, "a column is missing")
    lower, upper = (cuts_of(metadata, table, side, field_ids) for side in ("lower", "upper"))
    numbers = [delete.number if each is None else each for each in table["sequence_number"].to_pylist()]
    spans = [Span(*each) for each in zip(lower, upper, numbers, strict=True)]
    ranks = [cut.rank for span in spans for cut in (span.lower, span.upper)]
    require(ranks == sorted(ranks), location, "spans out of order")
    require(all(span.lower.rank < span.upper.rank for span in spans), location, "an empty span")
    require(all(span.number <= delete.number for span in spans), location, "a span newer than its entry")
    return spans


def cuts_of(metadata: Metadata, table: pa.Table, side: str, field_ids: list[int]) -> list[Cut]:
    columns = [table[f"{side}_{place}"].to_pylist() for place in range(len(field_ids))]
    tuples = zip(*typed_columns(metadata, field_ids, columns), strict=True)
    depths, sides = table[f"{side}_depth"].to_pylist(), table[f"{side}_after"].to_pylist()
    return [Cut(values[:depth], is_after) for values, depth, is_after in zip(tuples, depths, sides, strict=True)]
