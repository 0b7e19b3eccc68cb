"""The specification's examples, tables and links, checked against the code and against each other."""

from __future__ import annotations

import ast
import datetime as dt
import io
import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
)

from tableformat import properties
from tableformat.deletes.codecs.range_file import spans_to_parquet_table, write_span_table
from tableformat.deletes.spans.cuts import cut_after, cut_before
from tableformat.deletes.spans.spans import SpanArray
from tableformat.iceberg_properties import ICEBERG_PROPERTIES, Effect, IcebergProperty, ValueKind, Values
from tableformat.keys.encoding import encode_values
from tableformat.keys.key_columns import KeyColumns
from tableformat.keys.sort_marker import marker_bytes, sorted_by
from tableformat.parquet.parquet_file import plain_parquet

SPECS: Final = Path(__file__).resolve().parents[2] / "specs"
PROPERTIES: Final = SPECS.parent / "docs" / "reference" / "properties.md"
DOCUMENTS: Final = sorted(path.relative_to(SPECS).as_posix() for path in SPECS.rglob("*.md"))

_STRING, _INT, _LONG, _DOUBLE = StringType(), IntegerType(), LongType(), DoubleType()
ENCODED_TUPLES: Final[dict[str, list[tuple[tuple[Any, ...], tuple[PrimitiveType, ...]]]]] = {
    "(null)": [((None,), (each,)) for each in (_STRING, _LONG, _DOUBLE, BinaryType(), DecimalType(9, 2))],
    "(0)": [((0,), (_LONG,))],
    "(-1)": [((-1,), (_INT,))],
    "(9223372036854775807)": [((2**63 - 1,), (_LONG,))],
    "(2026-01-31)": [((dt.date(2026, 1, 31),), (DateType(),))],
    "(1970-01-01 00:00:01)": [((dt.datetime(1970, 1, 1, 0, 0, 1),), (TimestampType(),))],
    "(true)": [((True,), (BooleanType(),))],
    "(-1.5)": [((-1.5,), (FloatType(),)), ((-1.5,), (_DOUBLE,))],
    "(-0.0) and (0.0)": [((-0.0,), (_DOUBLE,)), ((0.0,), (_DOUBLE,))],
    "(NaN)": [((math.nan,), (_DOUBLE,)), ((-math.nan,), (FloatType(),))],
    "(-1.50)": [((Decimal("-1.50"),), (DecimalType(9, 2),))],
    "('')": [(("",), (_STRING,))],
    "('é')": [(("é",), (_STRING,))],
    "(00 FF)": [((b"\x00\xff",), (BinaryType(),))],
    "('A', 3)": [(("A", 3), (_STRING, _INT)), (("A", 3), (_STRING, _LONG))],
    "('A\\0', 3)": [(("A\0", 3), (_STRING, _INT))],
}
"""The values of the first two columns of the table in RD-4."""


def _text(document: str) -> str:
    return (SPECS / document).read_text()


def _stated_encodings() -> dict[str, bytes]:
    rows = re.findall(
        r"^\| (`\(.*?\)`(?: and `\(.*?\)`)?) \| .*? \| `([0-9A-F |\\]+)` \|$", _text("range-deletes.md"), re.M
    )
    return {name.replace("`", ""): bytes.fromhex(re.sub(r"[|\\]", "", encoded)) for name, encoded in rows}


def test_key_encodings_in_the_specification_match_the_code() -> None:
    """RD-4."""
    stated = _stated_encodings()
    assert stated.keys() == ENCODED_TUPLES.keys()
    for name, tuples in ENCODED_TUPLES.items():
        for values, types in tuples:
            assert encode_values(values, types) == stated[name], name


def test_prefix_cuts_are_in_the_specified_order() -> None:
    """RD-1, RD-5: the listing in RD-4, from top to bottom in rising order of bytes."""
    key = KeyColumns((1, 2), ("a", "b"), (_STRING, _LONG))
    shown = re.search(r"```\n(02 40 00 01.*?)```", _text("range-deletes.md"), re.S)
    assert shown is not None
    lines = [re.fullmatch(r"([0-9A-F ]+?) +([a-z(].*)", line) for line in shown[1].splitlines()]
    stated = [(match[2].split("  ")[0], bytes.fromhex(match[1])) for match in lines if match is not None]
    assert len(stated) == len(lines)
    maximum = 2**63 - 1
    made = {
        "('@', maximum)": encode_values(("@", maximum), key.types),
        "before('A')": cut_before(key, ("A",)).encoded[0].as_py(),
        "('A', null)": encode_values(("A", None), key.types),
        "('A', 3)": encode_values(("A", 3), key.types),
        "('A', maximum)": encode_values(("A", maximum), key.types),
        "after('A')": cut_after(key, ("A",)).encoded[0].as_py(),
        "('A\\0', null)": encode_values(("A\0", None), key.types),
        "('B', null)": encode_values(("B", None), key.types),
    }
    assert stated == list(made.items())
    assert [encoded for _, encoded in stated] == sorted(encoded for _, encoded in stated)


def test_range_delete_file_matches_the_format_specification(tmp_path: Path) -> None:
    """FM-13, FM-14, RD-6, RD-7: the example of two spans in format.md, written and read again as plain Parquet."""
    schema = Schema(
        NestedField(1, "id1", _STRING, required=True),
        NestedField(2, "id2", _LONG, required=True),
        NestedField(3, "num_cal", _INT, required=True),
    )
    key = KeyColumns.of(schema, (1, 2, 3))
    first = SpanArray(key, cut_before(key, ("A", 3)), cut_after(key, ("A", 3)), None)
    second = SpanArray(key, cut_before(key, ("B",)), cut_after(key, ()), None)
    path = tmp_path / "spans.parquet"
    with path.open("wb") as sink:
        write_span_table(spans_to_parquet_table(SpanArray.concat([first, second])), sink)

    assert path.read_bytes()[-4:] == b"RDP1"
    file = pq.ParquetFile(io.BytesIO(plain_parquet(path.read_bytes())))
    header, *rows = re.findall(r"^\| ((?:lower_0|[AB]) \| .*?) \|$", _text("format.md"), re.M)
    names = header.split(" | ")
    assert file.schema_arrow.names == names
    values = {"null": None, "true": True, "false": False, "A": "A", "B": "B"}
    stated = [[values[cell] if cell in values else int(cell) for cell in row.split(" | ")] for row in rows]
    assert [[row[name] for name in names] for row in file.read().to_pylist()] == stated

    field_ids = {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in file.schema_arrow}
    for name in ("lower_depth", "upper_depth", "lower_after", "upper_after", "sequence_number"):
        assert re.search(rf"^\| `{name}` \| {field_ids[name]} \|", _text("format.md"), re.M), name
    for position in range(3):
        assert field_ids[f"lower_{position}"] == 2147483453 + 2 * position
        assert field_ids[f"upper_{position}"] == 2147483454 + 2 * position
    footer = re.search(r'^\{"version": 1, .*\}$', _text("format.md"), re.M)
    assert footer is not None
    assert ast.literal_eval(file.metadata.metadata[b"tableformat.range-deletes"].decode()) == ast.literal_eval(
        footer[0]
    )


def test_sort_marker_matches_the_format_specification() -> None:
    """RD-11."""
    stated = re.search(r'^ *(\{"field-ids".*\})$', _text("format.md"), re.M)
    assert stated is not None
    assert marker_bytes((1, 2, 3)).decode() == stated[1]
    assert sorted_by({b"tableformat.sorted-by": stated[1].encode()}) == (1, 2, 3)


def test_properties_table_matches_the_code() -> None:
    document, _, _ = PROPERTIES.read_text().partition("## Properties of Iceberg")
    rows = re.findall(r"^\| `([a-z.-]+[a-z])(?:\.<.*?>)?` \|\s*`?([^|`]*?)`?\s*\|", document, re.M)
    stated = {name: default.strip() for name, default in rows}
    names = {
        name: value
        for name, value in vars(properties).items()
        if name.isupper() and isinstance(value, str) and "." in value
    }
    made = {value.rstrip("."): str(getattr(properties, f"{name}_DEFAULT", "")) for name, value in names.items()}
    made[properties.PREFIX_ENCODING] = properties.PREFIX_ENCODINGS[0]
    assert {name: stated.get(name) for name in made} == made


def test_iceberg_properties_table_matches_the_code() -> None:
    """FM-25."""
    _, _, section = PROPERTIES.read_text().partition("## Properties of Iceberg")
    rows = re.findall(r"^\| `([a-z.-]+?)(?:<column>)?` \| (.*?) \| (.*?) \|$", section, re.M)
    made = [(known.name, _values_told(known.values), _effect_told(known)) for known in ICEBERG_PROPERTIES.values()]
    assert rows == made


def _values_told(values: Values) -> str:
    return values.value if isinstance(values, ValueKind) else ", ".join(f"`{word}`" for word in values)


def _effect_told(known: IcebergProperty) -> str:
    if known.effect is Effect.HONOURED:
        return "honoured"
    return "no effect" if known.always is None else f"no effect; `{known.always}` is what is done"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_in_the_specification_resolve(document: str) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", _text(document)):
        path = ((SPECS / document).parent / target).resolve() if target else SPECS / document
        assert path.exists(), f"{document}: no file {target}"
        if anchor:
            assert anchor in _anchors(path), f"{document}: no heading #{anchor} in {path.name}"


def test_every_rule_has_one_heading() -> None:
    headings = {
        "delete-application.md": [f"DA-{number}" for number in range(1, 12)],
        "range-deletes.md": [f"RD-{number}" for number in range(1, 15)],
    }
    for document, rules in headings.items():
        assert sorted(re.findall(r"^### ((?:DA|RD)-\d+) ", _text(document), re.M)) == sorted(rules)


def _anchors(path: Path) -> set[str]:
    """The anchors that GitHub creates for the headings of a document."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
