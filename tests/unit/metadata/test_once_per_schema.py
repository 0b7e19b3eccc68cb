"""Values that are computed once for each schema."""

from __future__ import annotations

from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from tableformat.metadata.once_per_schema import _SCHEMAS_MAX, once_per_schema


def schema_of(name: str) -> Schema:
    return Schema(NestedField(1, name, LongType()))


def test_a_schema_is_asked_for_once() -> None:
    asked: list[str] = []

    @once_per_schema
    def names(schema: Schema) -> tuple[str, ...]:
        asked.extend(schema.column_names)
        return tuple(schema.column_names)

    one, other = schema_of("one"), schema_of("other")
    assert [names(each) for each in (one, other, one, other)] == [("one",), ("other",)] * 2
    assert asked == ["one", "other"]


def test_schemas_that_come_and_go_are_not_taken_for_each_other() -> None:
    """An object that is freed leaves its id to the next one, and what is kept is bounded."""

    @once_per_schema
    def names(schema: Schema) -> tuple[str, ...]:
        return tuple(schema.column_names)

    for number in range(3 * _SCHEMAS_MAX):
        assert names(schema_of(f"c{number}")) == (f"c{number}",)
