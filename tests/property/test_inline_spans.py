"""RD-13: the spans in the manifest entry of a range delete file are the spans in the file."""

from __future__ import annotations

import io
import zlib
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from example_counts import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from key_cases import Cut, key_of, keyed_cases, span_array
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, PrimitiveType, StringType

from tableformat.deletes.codecs.inline_spans import decode_spans, decode_spans_of_files, encode_spans
from tableformat.deletes.codecs.packed_spans import MARK, MAX_SPANS, pack_spans
from tableformat.deletes.codecs.range_file import spans_from_parquet, spans_to_parquet_table, write_span_table
from tableformat.deletes.spans.spans import INHERITED, SpanArray, sort_and_merge, spans_of_prefixes
from tableformat.errors import CorruptFileError
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.content_file import RANGE_DELETES_PARQUET, DeleteFile, FileContent
from tableformat.parquet.parquet_file import plain_parquet

Case: TypeAlias = tuple[KeyColumns, list[tuple[Any, ...]], list[tuple[Cut, Cut]]]


def entry(spans: SpanArray, carried: bytes | None, number: int = 7) -> DeleteFile:
    return DeleteFile(
        file_path=f"file:///deletes/{number}.parquet",
        file_format=RANGE_DELETES_PARQUET,
        spec_id=0,
        record_count=len(spans),
        file_size_bytes=1,
        sequence_number=number,
        content=FileContent.EQUALITY_DELETES,
        equality_ids=spans.key.field_ids,
        range_spans=carried,
    )


def of_the_file(spans: SpanArray) -> SpanArray:
    sink = io.BytesIO()
    write_span_table(spans_to_parquet_table(spans), sink)
    return spans_from_parquet(pq.read_table(io.BytesIO(plain_parquet(sink.getvalue()))), "1.parquet")


def same(left: SpanArray, right: SpanArray) -> bool:
    return left.key == right.key and all(
        ours.encoded.equals(theirs.encoded) and ours.depth.tolist() == theirs.depth.tolist()
        for ours, theirs in ((left.lower, right.lower), (left.upper, right.upper))
    )


@settings(max_examples=examples(1), deadline=None)
@given(keyed_cases())
def test_spans_in_entry_equal_spans_in_file(case: Case) -> None:
    key, _, pairs = case
    spans = sort_and_merge(span_array(key, pairs))
    carried = encode_spans(spans, spans_to_parquet_table(spans))
    assume(carried is not None)
    [decoded] = decode_spans([entry(spans, carried)], None)
    assert same(decoded, of_the_file(spans))
    assert decoded.sequence_numbers is not None
    assert decoded.sequence_numbers.tolist() == [7] * len(spans)


@settings(max_examples=examples(1), deadline=None)
@given(st.lists(keyed_cases(), min_size=1, max_size=4))
def test_packed_spans_equal_spans_of_their_files(cases: list[Case]) -> None:
    """RD-13, RD-8: files with the same key are decoded together, others separately; each has its own sequence
    number."""
    spans = [sort_and_merge(span_array(key, pairs)) for key, _, pairs in cases]
    entries = [entry(each, pack_spans(spans_to_parquet_table(each)), number) for number, each in enumerate(spans, 3)]
    found = decode_spans_of_files(entries, None)
    for number, (each, decoded) in enumerate(zip(spans, found, strict=True), 3):
        assert same(decoded, of_the_file(each))
        assert decoded.sequence_numbers is not None
        assert decoded.sequence_numbers.tolist() == [number] * len(each)


@settings(max_examples=examples(1), deadline=None)
@given(st.data(), keyed_cases())
def test_damaged_packed_bytes_raise_error_with_file_name(data: st.DataObject, case: Case) -> None:
    """zlib's checksum notices what a changed bit would bring back."""
    key, _, pairs = case
    spans = sort_and_merge(span_array(key, pairs))
    packed = pack_spans(spans_to_parquet_table(spans))
    assert packed is not None
    place = data.draw(st.integers(1, len(packed) - 1))
    flipped = bytes([packed[place] ^ data.draw(st.integers(1, 255))])
    damaged = data.draw(st.sampled_from([packed[:place], packed[:place] + flipped + packed[place + 1 :]]))
    with pytest.raises(CorruptFileError, match=r"deletes/7\.parquet"):
        decode_spans([entry(spans, damaged)], None)


def test_invalid_packed_bytes_raise_error() -> None:
    """Bytes that decompress to very many, bytes of another table, and bytes with fewer spans than the entry states."""
    spans = spans_of_prefixes(key_of([LongType()]), pa.table({"k0": list(range(6))}))
    packed = pack_spans(spans_to_parquet_table(sort_and_merge(spans)))
    many = MARK + zlib.compress(bytes(32 * 1024 * 1024))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema({"a": pa.int64()})) as writer:
        writer.write_table(pa.table({"a": range(6)}))
    other = MARK + zlib.compress(sink.getvalue())
    for damaged, words in ((many, "no end"), (other, "range-deletes"), (packed, "states 5 spans and carries 6")):
        stated = spans.slice(0, 5) if damaged is packed else spans
        with pytest.raises(CorruptFileError, match=words):
            decode_spans([entry(stated, damaged)], None)


def test_damaged_packed_file_in_batch_is_named() -> None:
    """DA-8, RD-13: and a stream of other batches than our own is read alone."""
    spans = spans_of_prefixes(key_of([LongType()]), pa.table({"k0": list(range(6))}))
    packed = pack_spans(spans_to_parquet_table(spans))
    assert packed is not None
    stored = zlib.decompress(packed[len(MARK) :])
    rows = pa.ipc.open_stream(stored).read_all()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=2)
    in_batches = MARK + zlib.compress(sink.getvalue())
    unsorted = MARK + zlib.compress(stored.replace(bytes([3, 0, 0, 0, 0, 0, 0, 0]), bytes([9, 0, 0, 0, 0, 0, 0, 0])))
    good, other = entry(spans, packed, 3), entry(spans, in_batches, 4)
    found = decode_spans_of_files([good, other, good], None)
    assert [same(each, of_the_file(spans)) for each in found] == [True] * 3
    assert [each.sequence_numbers.tolist() for each in found if each.sequence_numbers is not None] == [
        [number] * 6 for number in (3, 4, 3)
    ]
    wrong = replace(entry(spans, unsorted, 5), file_path="deletes/wrong.parquet")
    with pytest.raises(CorruptFileError, match=r"deletes/wrong\.parquet"):
        decode_spans([good, wrong, good], None)


def test_entry_span_form_depends_on_number_and_size() -> None:
    """RD-13: by number and by size; spans that state numbers stay in their file."""
    key = key_of([LongType()])
    for count, is_carried in ((0, True), (4, True), (5, True), (MAX_SPANS, True), (MAX_SPANS + 1, False)):
        spans = spans_of_prefixes(key, pa.table({"k0": range(count)}))
        carried = encode_spans(spans, spans_to_parquet_table(spans))
        assert (carried is not None) == is_carried
        if carried is not None:
            assert carried.startswith(MARK) == (count > 4)
            assert same(decode_spans([entry(spans, carried)], None)[0], of_the_file(spans))
    random = np.random.default_rng(3)
    text_key = key_of([StringType()])
    for length, count, form in ((50, 4, "record"), (200, 4, "packed"), (20_000, 1, "none"), (20_000, 5, "none")):
        values = ["".join(map(chr, random.integers(32, 127, length))) for _ in range(count)]
        spans = spans_of_prefixes(text_key, pa.table({"k0": values}))
        carried = encode_spans(spans, spans_to_parquet_table(spans))
        assert form == ("none" if carried is None else "packed" if carried.startswith(MARK) else "record")
    numbered = spans_of_prefixes(key, pa.table({"k0": [1, 2]})).with_sequence_numbers(np.array([3, INHERITED]))
    assert encode_spans(numbered, spans_to_parquet_table(numbered)) is None
    inheriting = SpanArray(key, numbered.lower, numbered.upper, np.array([INHERITED, INHERITED]))
    assert encode_spans(inheriting, spans_to_parquet_table(inheriting)) is not None


def carried_by(number: int, key_type: PrimitiveType, *values: int) -> DeleteFile:
    """An entry of the points, in the given order, sorted or not."""
    points = [spans_of_prefixes(key_of([key_type]), pa.table({"k0": pa.array([value])})) for value in values]
    spans = SpanArray.concat(points)
    return entry(spans, encode_spans(spans, spans_to_parquet_table(spans)), number)


def test_mixed_entry_forms_and_promoted_keys_are_decoded_together() -> None:
    """RD-13, RD-8: each with the sequence number of its file, regardless of the order of their keys."""
    entries = [
        carried_by(3, LongType(), 9, 12),
        carried_by(4, IntegerType(), 5),
        carried_by(5, LongType(), *range(20, 30)),
        carried_by(6, IntegerType(), -4, 3),
        carried_by(7, LongType(), 1),
        carried_by(8, LongType(), 0, 2, 4, 6),
    ]
    schema = Schema(NestedField(1, "k", LongType()))
    found = decode_spans_of_files(entries, schema)
    lowest = [["9", "12"], ["5"], [str(each) for each in range(20, 30)], ["-4", "3"], ["1"], ["0", "2", "4", "6"]]
    assert [[str(value) for value in spans.lower.columns[0].to_pylist()] for spans in found] == lowest
    assert [set(spans.sequence_numbers.tolist()) for spans in found if spans.sequence_numbers is not None] == [
        {number} for number in range(3, 9)
    ]
    assert sum(map(len, decode_spans(entries, schema))) == sum(map(len, found))
    assert {spans.key.types for spans in found} == {(LongType(),)}


@pytest.mark.parametrize("beside", [0, 2])
def test_damaged_entry_in_batch_is_named(beside: int) -> None:
    """DA-8, RD-7: spans out of order, another number of them, columns that are not the key's."""
    good = [carried_by(number, LongType(), number, number + 1) for number in range(3, 3 + beside)]
    unsorted = replace(carried_by(9, LongType(), 5, 4), file_path="deletes/wrong.parquet")
    other_key = replace(carried_by(9, LongType(), 5), file_path="deletes/wrong.parquet", equality_ids=(1, 2))
    fewer = replace(carried_by(9, LongType(), 5), file_path="deletes/wrong.parquet", record_count=2)
    # Files are decoded together by their list of columns, so a file with another list is decoded alone.
    for wrong in (unsorted, fewer, *(() if good else (other_key,))):
        with pytest.raises(CorruptFileError, match=r"deletes/wrong\.parquet"):
            decode_spans([*good, wrong, *good], None)


def test_packed_value_offsets_out_of_bounds_raise_error() -> None:
    """DA-8: also of one file among others, and before any of them is read."""
    spans = spans_of_prefixes(key_of([StringType()]), pa.table({"k0": ["aaa", "bbbb", "ccc", "ddd", "eee", "fff"]}))
    packed = pack_spans(spans_to_parquet_table(spans))
    assert packed is not None
    stored = zlib.decompress(packed[len(MARK) :])
    end_of_the_second = (7).to_bytes(8, "little")
    assert end_of_the_second in stored
    damaged = MARK + zlib.compress(stored.replace(end_of_the_second, (1 << 40).to_bytes(8, "little")))
    wrong = replace(entry(spans, damaged), file_path="deletes/wrong.parquet")
    for deletes in ([wrong], [entry(spans, packed), wrong]):
        with pytest.raises(CorruptFileError, match=r"deletes/wrong\.parquet"):
            decode_spans(deletes, None)


@settings(max_examples=examples(1), deadline=None)
@given(st.data(), keyed_cases())
def test_damaged_span_bytes_raise_error_or_decode_to_other_spans(data: st.DataObject, case: Case) -> None:
    key, _, pairs = case
    spans = sort_and_merge(span_array(key, pairs))
    carried = encode_spans(spans, spans_to_parquet_table(spans))
    assume(carried)
    damaged = bytearray(carried)
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    damaged = damaged[: data.draw(st.integers(0, len(damaged)))]
    try:
        decode_spans([entry(spans, bytes(damaged))], None)
    except CorruptFileError as error:
        assert "deletes/7.parquet" in str(error)  # noqa: PT017
