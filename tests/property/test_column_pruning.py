"""Data files as columns: decoding, pruning and joining them with range deletes gives the same as one file at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock
from uuid import UUID

import pytest
from example_counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.types import (
    BinaryType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from test_manifest_roundtrip import LOCAL, SCHEMA, SOURCES, entries, same, specs_with_partitions, written

from tableformat.deletes.spans.bounds import key_bounds
from tableformat.deletes.spans.key_bound_columns import key_bound_columns
from tableformat.errors import CorruptFileError
from tableformat.filters import file_pruning
from tableformat.filters.bound_filter import FALSE, BoundFilter, Comparison, Operator, all_of, any_of
from tableformat.filters.file_pruning import FilePruning, residual_by_bounds
from tableformat.filters.partition_pruning import PartitionPruning
from tableformat.keys.key_columns import KeyColumns
from tableformat.merge_on_read import delete_index
from tableformat.merge_on_read.delete_index import ColumnTypes, KeyDeleteIndex
from tableformat.metadata.column_bounds import to_bound, truncate_lower, truncate_upper
from tableformat.metadata.columns import arrow_records
from tableformat.metadata.columns.data_columns import DataColumns, columns_of_files
from tableformat.metadata.columns.data_file_rows import data_files
from tableformat.metadata.columns.live_files import live_files
from tableformat.metadata.columns.raw_manifest import decode_manifests
from tableformat.metadata.content_file import PARQUET, ContentFile, DataFile, DeleteFile, FileContent
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestContent, ManifestEntry
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest

NARROWER: Mapping[type[PrimitiveType], PrimitiveType] = {
    LongType: IntegerType(),
    DoubleType: FloatType(),
    TimestampType: DateType(),
    TimestamptzType: DateType(),
}
"""The type that a column may have had before it was promoted: its bounds still have that type."""
VALUES = {type(source): values for source, values in SOURCES}
WITH_ONE_VALUE = [
    Operator.EQUAL,
    Operator.NOT_EQUAL,
    Operator.LESS,
    Operator.LESS_OR_EQUAL,
    Operator.GREATER,
    Operator.GREATER_OR_EQUAL,
]
READING = settings(max_examples=examples(0.6), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def stored_bounds(draw: st.DrawFn, source: PrimitiveType, values: Any) -> tuple[bytes | None, bytes | None]:
    """Two bounds of a column as some writer may have left them."""

    def one(*, is_upper: bool) -> bytes | None:
        kind = draw(st.sampled_from(["value", "value", "value", "missing", "narrow", "odd"]))
        if kind == "missing":
            return None
        if kind == "odd":
            return draw(st.binary(max_size=18))
        if kind == "narrow" and type(source) in NARROWER:
            narrower = NARROWER[type(source)]
            return to_bound(draw(VALUES[type(narrower)]), narrower)
        value = draw(values)
        if isinstance(source, (StringType, BinaryType)):
            value = truncate_upper(value, 2) if is_upper else truncate_lower(value, 2)
        return None if value is None else to_bound(value, source)

    return one(is_upper=False), one(is_upper=True)


@st.composite
def files_with_bounds(draw: st.DrawFn, columns: list[int], specs: list[Any]) -> DataFile:
    spec, partitions = draw(st.sampled_from(specs))
    counts = st.none() | st.integers(0, 3)
    metrics: dict[str, dict[int, Any]] = {
        name: {} for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    }
    for column in columns:
        lower, upper = draw(stored_bounds(*SOURCES[column]))
        found = {
            "value_counts": draw(counts),
            "null_value_counts": draw(counts),
            "nan_value_counts": draw(counts),
            "lower_bounds": lower,
            "upper_bounds": upper,
        }
        for name, value in found.items():
            if value is not None:
                metrics[name][column + 1] = value
    return DataFile(
        file_path=f"file:/t/{draw(st.integers(0, 99))}",
        file_format=PARQUET,
        spec_id=spec.spec_id,
        partition=draw(partitions),
        record_count=draw(st.integers(0, 3)),
        file_size_bytes=1,
        sequence_number=draw(st.integers(0, 5)),
        **{name: each or draw(st.sampled_from([each, None])) for name, each in metrics.items()},
    )


@st.composite
def leaves(draw: st.DrawFn, column: int) -> BoundFilter:
    source, values = SOURCES[column]
    is_nullable = draw(st.booleans())
    field = NestedField(column + 1, f"c {column + 1}", source, required=not is_nullable)
    literal = values.filter(lambda value: value == value).map(  # noqa: PLR0124 - NaN is no literal
        lambda value: value.bytes if isinstance(value, UUID) else value
    )
    kinds = ["one", "one", "set", "null"]
    if isinstance(source, (StringType, BinaryType)):
        kinds.append("prefix")
    if isinstance(source, (FloatType, DoubleType)):
        kinds.append("nan")
    kind = draw(st.sampled_from(kinds))
    found: tuple[Any, ...] = (draw(literal),)
    if kind == "one":
        operator = draw(st.sampled_from(WITH_ONE_VALUE))
    elif kind == "prefix":
        operator = draw(st.sampled_from([Operator.STARTS_WITH, Operator.NOT_STARTS_WITH]))
    elif kind == "set":
        operator = draw(st.sampled_from([Operator.IN, Operator.NOT_IN]))
        found = tuple(sorted(set(draw(st.lists(literal, min_size=2, max_size=5)))))
    else:
        pair = [Operator.IS_NULL, Operator.NOT_NULL] if kind == "null" else [Operator.IS_NAN, Operator.NOT_NAN]
        operator, found = draw(st.sampled_from(pair)), ()
    return Comparison(field, (field.name,), operator, found, is_nullable)


@st.composite
def prunings(draw: st.DrawFn) -> tuple[BoundFilter, dict[int, PartitionSpec], list[DataFile]]:
    columns = draw(st.lists(st.integers(0, len(SOURCES) - 1), min_size=1, max_size=2, unique=True))
    specs = [
        (PartitionSpec(*spec.fields, spec_id=spec_id), partitions)
        for spec_id, (spec, partitions) in enumerate(draw(st.lists(specs_with_partitions(), min_size=1, max_size=2)))
    ]
    terms = [draw(leaves(column)) for column in draw(st.lists(st.sampled_from(columns), min_size=1, max_size=4))]
    half = len(terms) // 2
    shape = draw(st.sampled_from(["and", "or", "and of or", "or of and"]))
    bound = {
        "and": lambda: all_of(terms),
        "or": lambda: any_of(terms),
        "and of or": lambda: all_of([any_of(terms[:half]), *terms[half:]]) if half else all_of(terms),
        "or of and": lambda: any_of([all_of(terms[:half]), *terms[half:]]) if half else any_of(terms),
    }[shape]()
    files = draw(st.lists(files_with_bounds(columns, specs), max_size=6))
    return bound, {spec.spec_id: spec for spec, _ in specs}, files


def kept_one_by_one(bound: BoundFilter, specs: dict[int, PartitionSpec], files: list[DataFile]) -> Any:
    """The residual filter of each file, and the numbers of files that partitions and bounds rule out."""
    kept, by_partition, by_bounds = [], 0, 0
    prunings = {spec_id: PartitionPruning(bound, spec, SCHEMA) for spec_id, spec in specs.items()}
    for row, data in enumerate(files):
        in_partition = prunings[data.spec_id].residual_in(data.partition)
        left = FALSE if in_partition is FALSE else residual_by_bounds(in_partition, data)
        if in_partition is FALSE:
            by_partition += 1
        elif left is FALSE or data.record_count == 0:
            by_bounds += 1
        else:
            kept.append((row, left, left is bound))
    return kept, by_partition, by_bounds


def kept_together(bound: BoundFilter, specs: dict[int, PartitionSpec], columns: DataColumns) -> Any:
    found = FilePruning(bound, specs, SCHEMA).keep(columns)
    residuals = [found.residuals[index] for index in found.residual_ids.tolist()]
    kept = [(row, left, left is bound) for row, left in zip(found.rows.tolist(), residuals, strict=True)]
    return kept, found.skipped_by_partition_count, found.skipped_by_bounds_count


def outcome(run: Any) -> Any:
    """The result of the call, or the error that a bound is invalid for its column."""
    try:
        return run()
    except CorruptFileError:
        return CorruptFileError


@settings(max_examples=examples(1), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(prunings(), st.sampled_from([{}, {"_TABLE_MAX": 0}, {"_CODES_MAX": 1, "_TABLE_MAX": 20}]))
def test_batch_pruning_agrees_with_single_file_pruning(drawn: Any, limits: dict[str, int]) -> None:
    """All types; nulls, NaN, truncated and narrow bounds, invalid bounds, several specs. The states of comparisons are
    distinguished by a table, by a sort, and again after each comparison."""
    bound, specs, files = drawn
    one_by_one = outcome(lambda: kept_one_by_one(bound, specs, files))
    with mock.patch.multiple(file_pruning, **limits) if limits else nullcontext():
        together = outcome(lambda: kept_together(bound, specs, columns_of_files(files)))
    # Text that is not valid UTF-8 has an order as bytes but not as text: only the columns give a result.
    if one_by_one is not CorruptFileError or together is CorruptFileError:
        assert same(together, one_by_one)


@st.composite
def keyed_deletes(draw: st.DrawFn, columns: list[int], specs: list[Any]) -> DeleteFile:
    file = draw(files_with_bounds(columns, specs))
    described = {each.name: getattr(file, each.name) for each in fields(ContentFile)}
    ids = tuple(column + 1 for column in draw(st.permutations(columns)))
    return DeleteFile(**described, content=FileContent.EQUALITY_DELETES, equality_ids=ids)


@settings(max_examples=examples(1), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_batch_delete_assignment_agrees_with_single_files(data: st.DataObject) -> None:
    """DA-2, DA-3: by number, scope and bounds, whether they are listed for each file or shared."""
    columns = data.draw(st.lists(st.integers(0, len(SOURCES) - 1), min_size=1, max_size=2, unique=True))
    drawn = data.draw(st.lists(specs_with_partitions(), min_size=1, max_size=2))
    specs = [
        (PartitionSpec(*spec.fields, spec_id=spec_id), partitions) for spec_id, (spec, partitions) in enumerate(drawn)
    ]
    specs.append((PartitionSpec(spec_id=len(specs)), st.just(())))
    files = data.draw(st.lists(files_with_bounds(columns, specs), max_size=6))
    deletes = data.draw(st.lists(keyed_deletes(columns, specs), max_size=6))
    types = ColumnTypes({column + 1: SOURCES[column][0] for column in columns})
    by_id = {spec.spec_id: spec for spec, _ in specs}

    def listed() -> list[tuple[DeleteFile, ...]]:
        index = KeyDeleteIndex(deletes, by_id, types)
        return [index.deletes_of(file) for file in files]

    def one_by_one() -> list[Any]:
        index = KeyDeleteIndex(deletes, by_id, types)
        return [index.shared_deletes_of(file) for file in files]

    def together() -> list[Any]:
        found = KeyDeleteIndex(deletes, by_id, types).shared_deletes_of_all(columns_of_files(files), files)
        return [found.get(row, ()) for row in range(len(files))]

    with (
        mock.patch.object(delete_index, "SHARED_FROM", data.draw(st.sampled_from([2, 16]))),
        mock.patch.object(delete_index, "_COMPARED_AT_ONCE", data.draw(st.sampled_from([1, 1 << 24]))),
    ):
        expected, found = outcome(one_by_one), outcome(together)
    if expected is CorruptFileError or found is CorruptFileError:
        # Invalid UTF-8, as above.
        assert expected is CorruptFileError
        return
    assert list(map(type, found)) == list(map(type, expected))
    assert list(map(tuple, found)) == list(map(tuple, expected))
    for met, shared in zip(listed(), found, strict=True):
        assert set(map(id, met)) <= set(map(id, shared))


@settings(max_examples=examples(0.6), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_batch_key_bounds_agree_with_single_files(data: st.DataObject) -> None:
    """RD-10: the same cuts, regardless of the metrics."""
    columns = data.draw(st.lists(st.integers(0, len(SOURCES) - 1), min_size=1, max_size=3, unique=True))
    nowhere = (PartitionSpec(spec_id=0), st.just(()))
    files = data.draw(st.lists(files_with_bounds(columns, [nowhere]), min_size=1, max_size=6))
    key = KeyColumns(
        tuple(column + 1 for column in columns),
        tuple(f"c {column + 1}" for column in columns),
        tuple(SOURCES[column][0] for column in columns),
    )

    def one_by_one() -> list[tuple[bytes, bytes]]:
        return [(bounds.lower, bounds.upper) for bounds in (key_bounds(each, key) for each in files)]

    def together() -> list[tuple[bytes, bytes]]:
        bounds = key_bound_columns(columns_of_files(files), key)
        return list(zip(bounds.lower.to_pylist(), bounds.upper.to_pylist(), strict=True))

    assert outcome(together) == outcome(one_by_one)


@st.composite
def data_manifests(draw: st.DrawFn) -> Any:
    version = draw(st.sampled_from([2, 3]))
    spec, partitions = draw(specs_with_partitions())
    rows = draw(st.lists(entries(spec, partitions, ManifestContent.DATA, version), max_size=6))
    folder = draw(st.sampled_from(["", "s3://bucket/lake/table/data/"]))
    named = [replace(entry, file=replace(entry.file, file_path=folder + entry.file.file_path)) for entry in rows]
    return version, spec, named, draw(st.none() | st.integers(0, 10**6))


@pytest.fixture(params=["lanes", "one by one"])
def way_of_decoding(request: pytest.FixtureRequest) -> Iterator[str]:
    with mock.patch.object(arrow_records, "LANES_MIN", 0 if request.param == "lanes" else 1_000):
        yield request.param


@settings(READING, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(drawn=data_manifests())
def test_decoded_columns_equal_manifest_entries(way_of_decoding: str, drawn: Any) -> None:
    """DA-9: every field of every live file, with inherited numbers and row ids, by both ways of decoding."""
    version, spec, rows, first_row_id = drawn
    with tempfile.TemporaryDirectory() as directory:
        assigned, metadata = written(directory, version, ManifestContent.DATA, spec, rows)
        manifest = replace(assigned, first_row_id=first_row_id if version >= 3 else None)
        expected = [entry.file for entry in live_entries(read_manifest(LOCAL, manifest, metadata))]
        (raw,) = decode_manifests(LOCAL, [manifest])
    columns = live_files([(manifest, raw)], {spec.spec_id: spec})
    assert {columns.partitions[index] for index in columns.partition_ids.tolist()} == set(columns.partitions)
    found = list(data_files(columns))
    assert same(found, expected)


def test_parallel_decoding_handles_records_of_any_length(tmp_path: Path) -> None:
    """Many files with fields of many lengths, and paths inside other fields, are decoded in parallel lanes."""
    spec = PartitionSpec(spec_id=0)
    rows = [
        replace(
            entry,
            file=replace(entry.file, file_path=f"s3://bucket/lake/t/{number:x}", key_metadata=b"s3://bucket/lake/t/"),
        )
        for number, entry in enumerate(many_entries(spec))
    ]
    assigned, metadata = written(str(tmp_path), 3, ManifestContent.DATA, spec, rows)
    with mock.patch.object(arrow_records, "_one_by_one", side_effect=AssertionError("the lanes were not proved")):
        (raw,) = decode_manifests(LOCAL, [assigned])
    expected = [entry.file for entry in live_entries(read_manifest(LOCAL, assigned, metadata))]
    assert same(list(data_files(live_files([(assigned, raw)], {0: spec}))), expected)


def many_entries(spec: PartitionSpec) -> list[Any]:
    """Entries of every status; the same in every run."""
    random = Random(7)
    made = []
    for number in range(1_200):
        status = random.choice(list(EntryStatus))
        stated = None if status is EntryStatus.ADDED and random.random() < 0.5 else random.randrange(1_000)
        columns = range(random.randrange(6))
        file = DataFile(
            file_path="",
            file_format=PARQUET,
            spec_id=spec.spec_id,
            record_count=random.choice([0, 1, 63, 64, 2**40]),
            file_size_bytes=random.randrange(2**20),
            sequence_number=stated,
            file_sequence_number=None if status is EntryStatus.ADDED else number,
            value_counts=random.choice([None, {column: random.randrange(2**33) for column in columns}]),
            lower_bounds={column: random.randbytes(random.randrange(200)) for column in columns},
            split_offsets=random.choice([None, (4,), (4, 2**30)]),
            first_row_id=random.choice([None, number]),
        )
        made.append(ManifestEntry(status, random.randrange(-(2**63), 2**63), file))
    return made
