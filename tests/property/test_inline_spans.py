"""RD-13: what a manifest entry carries of a range delete file is what is in the file."""

from __future__ import annotations

import io
from typing import Any, TypeAlias

import pyarrow.parquet as pq
from example_counts import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from key_cases import Cut, keyed_cases, span_array

from tableformat.deletes.codecs.inline_spans import decode_spans, encode_spans
from tableformat.deletes.codecs.range_file import spans_from_parquet, write_spans
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge
from tableformat.errors import CorruptFileError
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.content_file import RANGE_DELETES_PARQUET, DeleteFile, FileContent

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
    write_spans(spans, sink)
    return spans_from_parquet(pq.read_table(io.BytesIO(sink.getvalue())), "1.parquet")


def same(left: SpanArray, right: SpanArray) -> bool:
    return left.key == right.key and all(
        ours.encoded.equals(theirs.encoded) and ours.depth.tolist() == theirs.depth.tolist()
        for ours, theirs in ((left.lower, right.lower), (left.upper, right.upper))
    )


@settings(max_examples=examples(1), deadline=None)
@given(keyed_cases())
def test_entry_and_file_hold_the_same_spans(case: Case) -> None:
    key, _, pairs = case
    spans = sort_and_merge(span_array(key, pairs))
    carried = encode_spans(spans)
    assume(carried is not None)
    [decoded] = decode_spans([entry(spans, carried)], None)
    assert same(decoded, of_the_file(spans))
    assert decoded.sequence_numbers is not None
    assert decoded.sequence_numbers.tolist() == [7] * len(spans)


@settings(max_examples=examples(1), deadline=None)
@given(st.data(), keyed_cases())
def test_damaged_bytes_are_an_error_that_names_the_file_or_other_spans(data: st.DataObject, case: Case) -> None:
    key, _, pairs = case
    spans = sort_and_merge(span_array(key, pairs))
    carried = encode_spans(spans)
    assume(carried)
    damaged = bytearray(carried)
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    damaged = damaged[: data.draw(st.integers(0, len(damaged)))]
    try:
        decode_spans([entry(spans, bytes(damaged))], None)
    except CorruptFileError as error:
        assert "deletes/7.parquet" in str(error)  # noqa: PT017
