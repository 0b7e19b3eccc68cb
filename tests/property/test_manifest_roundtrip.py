"""Manifests and manifest lists are read back unchanged, and errors name the damaged ones."""

from __future__ import annotations

import io
import itertools
import tempfile
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from example_counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tableformat.errors import CorruptFileError, TableFormatError
from tableformat.metadata.column_bounds import from_bound
from tableformat.metadata.content_file import PARQUET, PUFFIN, RANGE_DELETES_PARQUET, DataFile, DeleteFile, FileContent
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestContent, ManifestEntry
from tableformat.metadata.manifests.manifest_list import read_manifest_list, write_manifest_list
from tableformat.metadata.manifests.manifest_reader import read_manifest
from tableformat.metadata.manifests.manifest_writer import write_manifest

LOCAL = PyArrowFileIO()
COMMIT = 1_000
"""Sequence number of the commit that writes the manifest."""

INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
SOURCES: tuple[tuple[PrimitiveType, st.SearchStrategy[Any]], ...] = (
    (BooleanType(), st.booleans()),
    (IntegerType(), INTS),
    (LongType(), LONGS),
    (FloatType(), st.floats(width=32)),
    (DoubleType(), st.floats()),
    (DateType(), INTS),
    (TimeType(), st.integers(0, 86_399_999_999)),
    (TimestampType(), LONGS),
    (TimestamptzType(), LONGS),
    (TimestampNanoType(), LONGS),
    (StringType(), TEXT),
    (BinaryType(), st.binary(max_size=20)),
    (FixedType(5), st.binary(min_size=5, max_size=5)),
    (UUIDType(), st.uuids()),
    (DecimalType(9, 2), st.integers(-(10**9) + 1, 10**9 - 1).map(lambda unscaled: Decimal(unscaled).scaleb(-2))),
    (DecimalType(38, 0), st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal)),
)
SCHEMA = Schema(*[NestedField(i, f"c {i}", source) for i, (source, _) in enumerate(SOURCES, 1)])


def _partition_fields() -> list[tuple[PartitionField, st.SearchStrategy[Any]]]:
    """Every transform on every type that it takes, with values of its result type."""
    transforms: tuple[Transform[Any, Any], ...] = (
        IdentityTransform(),
        BucketTransform(16),
        TruncateTransform(3),
        YearTransform(),
        MonthTransform(),
        DayTransform(),
        HourTransform(),
        VoidTransform(),
    )
    ids = itertools.count(1000)
    fields = []
    for (source_id, (source, values)), transform in itertools.product(enumerate(SOURCES, 1), transforms):
        if not transform.can_transform(source):
            continue
        if isinstance(transform, VoidTransform):
            results: st.SearchStrategy[Any] = st.none()
        elif isinstance(transform, (IdentityTransform, TruncateTransform)):
            results = values
        else:
            results = INTS
        field_id = next(ids)
        fields.append((PartitionField(source_id, field_id, transform, f"{transform}.{field_id}"), results))
    return fields


PARTITION_FIELDS = _partition_fields()
COUNTS = st.none() | st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), max_size=4)
BOUNDS = st.none() | st.dictionaries(st.integers(0, 2**31 - 1), st.binary(max_size=20), max_size=4)


@st.composite
def specs_with_partitions(draw: st.DrawFn) -> tuple[PartitionSpec, st.SearchStrategy[tuple[Any, ...]]]:
    chosen = draw(st.lists(st.sampled_from(PARTITION_FIELDS), max_size=5, unique_by=lambda pair: pair[0].field_id))
    spec = PartitionSpec(*[field for field, _ in chosen], spec_id=draw(st.integers(0, 3)))
    return spec, st.tuples(*[st.none() | values for _, values in chosen])


@st.composite
def entries(draw: st.DrawFn, spec: PartitionSpec, partitions: Any, content: ManifestContent, version: int) -> Any:
    """An entry before the commit: an ADDED entry may omit its sequence numbers (DA-9)."""
    status = draw(st.sampled_from(EntryStatus))
    number = st.integers(0, COMMIT - 1)
    is_added = status is EntryStatus.ADDED
    common = {
        "file_path": draw(TEXT),
        "spec_id": spec.spec_id,
        "partition": draw(partitions),
        "record_count": draw(st.integers(0, 2**59)),
        "file_size_bytes": draw(st.integers(0, 2**62)),
        "sequence_number": draw(st.none() | number if is_added else number),
        "file_sequence_number": None if is_added else draw(number),
        **{name: draw(COUNTS) for name in ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")},
        **{name: draw(BOUNDS) for name in ("lower_bounds", "upper_bounds")},
        "key_metadata": draw(st.none() | st.binary(max_size=5)),
        "split_offsets": draw(st.none() | st.lists(st.integers(0, 2**62), max_size=3).map(tuple)),
        "sort_order_id": draw(st.none() | st.integers(0, 5)),
    }
    if content is ManifestContent.DATA:
        row_id = draw(st.none() | st.integers(0, 2**62)) if version >= 3 else None
        return ManifestEntry(status, draw(LONGS), DataFile(**common, file_format=PARQUET, first_row_id=row_id))
    kind = draw(st.sampled_from(["position", "equality", "range", *(["vector"] if version >= 3 else [])]))
    is_equality = kind in ("equality", "range")
    offset = st.integers(0, 2**62)
    file = DeleteFile(
        **common,
        file_format={"range": RANGE_DELETES_PARQUET, "vector": PUFFIN}.get(kind, PARQUET),
        content=FileContent.EQUALITY_DELETES if is_equality else FileContent.POSITION_DELETES,
        equality_ids=tuple(draw(st.lists(st.integers(1, 50), min_size=1, max_size=3))) if is_equality else None,
        referenced_data_file=draw(st.none() | TEXT),
        content_offset=draw(offset) if kind == "vector" else None,
        content_size_bytes=draw(offset) if kind == "vector" else None,
    )
    return ManifestEntry(status, draw(LONGS), file)


@st.composite
def manifests(draw: st.DrawFn) -> tuple[int, ManifestContent, PartitionSpec, list[ManifestEntry]]:
    version = draw(st.sampled_from([2, 3]))
    content = draw(st.sampled_from(ManifestContent))
    spec, partitions = draw(specs_with_partitions())
    return version, content, spec, draw(st.lists(entries(spec, partitions, content, version), max_size=4))


def committed(entry: ManifestEntry) -> ManifestEntry:
    """DA-9: the entry as every reader sees it, with inherited numbers if it omits them."""
    file = entry.file
    return replace(
        entry,
        file=replace(
            file,
            sequence_number=COMMIT if file.sequence_number is None else file.sequence_number,
            file_sequence_number=COMMIT if file.file_sequence_number is None else file.file_sequence_number,
        ),
    )


def written(directory: str, version: int, content: ManifestContent, spec: PartitionSpec, rows: Any) -> Any:
    """Manifest, list and metadata of a table of that one commit."""
    manifest = write_manifest(
        LOCAL,
        f"{directory}/m.avro",
        entries=rows,
        content=content,
        spec=spec,
        schema=SCHEMA,
        format_version=version,
        snapshot_id=77,
    )
    (assigned,) = write_manifest_list(
        LOCAL,
        f"{directory}/list.avro",
        manifests=[manifest],
        snapshot_id=77,
        parent_snapshot_id=None,
        sequence_number=COMMIT,
        format_version=version,
        first_row_id=0 if version >= 3 else None,
    )
    metadata = TableMetadataV2.model_construct(partition_specs=[spec])
    return assigned, metadata


def same(left: Any, right: Any) -> bool:
    """Equality in which NaN equals NaN and -0.0 is not 0.0."""
    return repr(left) == repr(right)


@settings(max_examples=examples(0.6), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(manifests())
def test_manifest_entries_round_trip(drawn: Any) -> None:
    """DA-9, RD-6: every field of every kind of file, with the commit's numbers for missing ones."""
    version, content, spec, rows = drawn
    with tempfile.TemporaryDirectory() as directory:
        assigned, metadata = written(directory, version, content, spec, rows)
        assert read_manifest_list(LOCAL, f"{directory}/list.avro") == (assigned,)
        # Row ids are assigned on reading, which has a separate test: here they are returned as stored.
        found = read_manifest(LOCAL, replace(assigned, first_row_id=None), metadata)
    assert same(found, tuple(committed(entry) for entry in rows))


@settings(max_examples=examples(0.6), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(manifests())
def test_manifest_file_bounds_enclose_its_entries(drawn: Any) -> None:
    version, content, spec, rows = drawn
    with tempfile.TemporaryDirectory() as directory:
        assigned, _ = written(directory, version, content, spec, rows)
    live = [committed(entry).file for entry in rows if entry.status is not EntryStatus.DELETED]
    assert assigned.min_sequence_number == min((file.sequence_number for file in live), default=COMMIT)
    assert assigned.sequence_number == COMMIT
    types = [field.field_type for field in spec.partition_type(SCHEMA).fields]
    for position, (summary, field_type) in enumerate(zip(assigned.partitions or (), types, strict=True)):
        values = [entry.file.partition[position] for entry in rows]
        bounded = [value for value in values if value is not None and value == value]  # noqa: PLR0124
        assert summary.contains_null == (None in values)
        assert summary.contains_nan == any(value is not None and value != value for value in values)  # noqa: PLR0124
        if not bounded:
            assert summary.lower_bound is None
            assert summary.upper_bound is None
        else:
            assert summary.lower_bound is not None
            assert summary.upper_bound is not None
            assert from_bound(summary.lower_bound, field_type) == min(bounded)
            assert from_bound(summary.upper_bound, field_type) == max(bounded)


@pytest.fixture(scope="module")
def good_files(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The bytes of a manifest and of a list, uncompressed so that damage affects the records."""
    directory = tmp_path_factory.mktemp("good")
    field = PartitionField(11, 1000, IdentityTransform(), "name")
    spec = PartitionSpec(field, spec_id=0)
    file = DataFile(
        file_path="s3://b/t/1.parquet",
        file_format=PARQUET,
        spec_id=0,
        partition=("x",),
        record_count=5,
        file_size_bytes=10,
        column_sizes={1: 1, 2: 2},
        lower_bounds={1: b"abc"},
        split_offsets=(4,),
    )
    rows = [ManifestEntry(EntryStatus.ADDED, 77, file)] * 3
    assigned, metadata = written(str(directory), 2, ManifestContent.DATA, spec, rows)
    return assigned, metadata, uncompressed(directory / "m.avro"), uncompressed(directory / "list.avro")


def uncompressed(path: Path) -> bytes:
    """The same records in a file without compression."""
    reader = fastavro.reader(io.BytesIO(path.read_bytes()))
    assert isinstance(reader.writer_schema, dict)
    stream = io.BytesIO()
    fastavro.writer(stream, reader.writer_schema, list(reader), codec="null")
    return stream.getvalue()


def read_damaged(good_files: Any, which: str, data: bytes) -> Any:
    """The result of reading, or the typed error; any other error fails the test."""
    assigned, metadata, _, _ = good_files
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"{which}.avro"
        path.write_bytes(data)
        try:
            if which == "list":
                return read_manifest_list(LOCAL, str(path))
            return read_manifest(LOCAL, replace(assigned, manifest_path=str(path)), metadata)
        except TableFormatError as error:
            return error if str(path) in str(error) else AssertionError(f"names no file: {error}")


@pytest.mark.parametrize("which", ["m", "list"])
@given(st.data())
@settings(max_examples=examples(0.6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_truncated_manifest_is_corrupt(good_files: Any, which: str, data: st.DataObject) -> None:
    good = good_files[2] if which == "m" else good_files[3]
    end_of_header = good.index(good[-16:]) + 16
    length = data.draw(st.integers(0, len(good) - 1).filter(lambda length: length != end_of_header))
    assert isinstance(read_damaged(good_files, which, good[:length]), CorruptFileError)


@pytest.mark.parametrize("which", ["m", "list"])
@given(st.data())
@settings(max_examples=examples(1), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bit_flip_in_manifest_never_raises_an_unnamed_error(good_files: Any, which: str, data: st.DataObject) -> None:
    """Avro has no checksums: a flip may change a value, but it never ends in an error that does not name the file."""
    good = bytearray(good_files[2] if which == "m" else good_files[3])
    good[data.draw(st.integers(0, len(good) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert isinstance(read_damaged(good_files, which, bytes(good)), (tuple, TableFormatError))
