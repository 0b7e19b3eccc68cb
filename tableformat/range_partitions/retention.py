"""The table property `tableformat.retain`: the age up to which rows are kept (MT-107).

    ts: 30 days; ts: 7 days where region = 'EU'

Each rule has a column of dates or timestamps, an age, and optionally values of other columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import numpy as np
from pyiceberg.expressions import And, BooleanExpression, LessThan, Reference
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, IntegerType, LongType, NestedField, PrimitiveType

from tableformat.errors import InvalidArgumentError, UnknownColumnError, UnsupportedFeatureError
from tableformat.filters.bound_filter import AllOf, BoundFilter, Comparison, Operator, bind_filter
from tableformat.filters.literals import literal_of
from tableformat.filters.predicate import parse_where
from tableformat.properties import RANGE_PARTITIONS, RETAIN
from tableformat.range_partitions.property_text import range_partitions_of
from tableformat.range_partitions.steps import Duration, Steps, check_age, moment_unit, parse_duration

_ONE: Final = r"""(?:[^;'"]|'(?:[^']|'')*'|"(?:[^"]|"")*")+"""
_RULES: Final = re.compile(_ONE)
_ALL: Final = re.compile(rf"(?=.*\S){_ONE}(?:;{_ONE})*;?\s*", re.DOTALL)
_RULE: Final = re.compile(
    r"""\s*(?P<column>"(?:[^"]|"")+"|[^:"\s]+)\s*:\s*(?P<age>\d*\s*[a-z]+)(?:\s+where\s+(?P<where>.+?))?\s*""",
    re.IGNORECASE | re.DOTALL,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PINS: Final = frozenset({Operator.EQUAL, Operator.IN, Operator.IS_NULL})


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """One rule, bound to the columns of a table."""

    text: str
    """The text that the table's owner wrote."""
    column: NestedField
    age: Duration
    where: BooleanExpression | None
    """Values of other columns; None for all rows."""
    named: frozenset[str]
    """The columns in the rule."""

    def cutoff(self, now: datetime) -> int:
        """MT-107: the first value that is kept, as an internal value of the column. A day that has begun counts as a
        whole day, so the cutoff moves once a day. For ages in hours it moves once an hour."""
        column_type = self._type
        whole = timedelta(hours=1) if self.age.unit == "hour" else timedelta(days=1)
        begun = (now.astimezone(UTC) - _EPOCH) // whole * whole
        unit = _unit_of(column_type)
        widths = {"D": timedelta(days=1), "us": timedelta(microseconds=1), "ns": timedelta(microseconds=1)}
        value = begun // widths[unit] * (1000 if unit == "ns" else 1)
        return Steps(column_type, self.age, 0, "UTC").less(value, self.age)

    def cutoff_text(self, now: datetime) -> str:
        """The cutoff in ISO 8601."""
        return str(np.datetime64(self.cutoff(now), _unit_of(self._type)))

    def old_rows(self, now: datetime) -> BooleanExpression:
        """A filter for old rows. Rows with a null are kept, because they have no age."""
        is_old = LessThan(term=Reference(self.column.name), value=literal_of(self.cutoff(now), self._type))
        return is_old if self.where is None else And(self.where, is_old)

    @property
    def _type(self) -> PrimitiveType:
        assert isinstance(self.column.field_type, PrimitiveType), "checked when the rule was read"
        return self.column.field_type


def retention_of(properties: Mapping[str, str], schema: Schema) -> tuple[RetentionRule, ...]:
    """MT-107: the rules of a table; empty if the property is not set. Raises InvalidArgumentError or UnknownColumnError
    for a rule that does not fit the table."""
    text = properties.get(RETAIN)
    if text is None:
        return ()
    if _ALL.fullmatch(text) is None:
        raise _unreadable(text)
    return tuple(_rule(each.strip(), schema) for each in _RULES.findall(text) if each.strip())


def check_retention(given: Mapping[str, str], properties: Mapping[str, str], schema: Schema) -> None:
    """MT-107, MT-108: check the rules that a caller sets, for a table with `properties`."""
    if RETAIN in given:
        refuse_two_retentions({**properties, **given}, schema)


def refuse_two_retentions(properties: Mapping[str, str], schema: Schema) -> None:
    """MT-108: raise InvalidArgumentError if range partitions also have an age on the column of a rule."""
    rules = retention_of(properties, schema)
    try:
        defined = range_partitions_of(properties, schema) if rules else None
    except UnsupportedFeatureError:
        return  # Writers refuse such a table by themselves (RP-1).
    if defined is None or defined.window.retain is None:
        return
    for rule in rules:
        if rule.column.field_id == defined.key.field_ids[0]:
            raise InvalidArgumentError(
                f"{RETAIN}: {rule.text!r} and the range partitions ({RANGE_PARTITIONS}) both define how long rows "
                f"are retained, by column {rule.column.name!r}. Nothing was changed. Use only one of them: range "
                "partitions drop whole ranges, the property deletes rows."
            )


def refuse_column_of_retention(properties: Mapping[str, str], schema: Schema, name: str) -> None:
    """MT-108: raise InvalidArgumentError if a column in a rule is about to be dropped or renamed."""
    for rule in retention_of(properties, schema):
        if name in rule.named:
            raise InvalidArgumentError(
                f"column {name!r} is used by the retention rule {rule.text!r}. Nothing was changed. Set {RETAIN} "
                f"without this rule first, or call remove_properties({RETAIN!r})."
            )


def _rule(text: str, schema: Schema) -> RetentionRule:
    match = _RULE.fullmatch(text)
    if match is None:
        raise _unreadable(text)
    name = match["column"]
    name = name[1:-1].replace('""', '"') if name.startswith('"') else name
    names = [field.name for field in schema.fields]
    if name not in names:
        raise UnknownColumnError(name, names, where=f"the table property {RETAIN}")
    column = schema.find_field(name)
    age = parse_duration(match["age"].strip(), option=RETAIN)
    column_type = column.field_type
    if not isinstance(column_type, PrimitiveType) or isinstance(column_type, IntegerType | LongType):
        raise InvalidArgumentError(
            f"{RETAIN}: column {name!r} is {column_type}, which does not represent time. Use a column of dates or "
            "timestamps."
        )
    check_age(column_type, age, column=name)
    where = None if match["where"] is None else parse_where(match["where"], schema)
    pinned: frozenset[str] = frozenset() if where is None else _pinned(bind_filter(where, schema), text)
    if name in pinned:
        raise InvalidArgumentError(f"{RETAIN}: {text!r} limits {name!r} twice. Nothing was changed.")
    return RetentionRule(text, column, age, where, frozenset({name, *pinned}))


def _pinned(bound: BoundFilter, text: str) -> frozenset[str]:
    """The columns that a condition limits to single values, so that old rows form spans."""
    terms = bound.terms if isinstance(bound, AllOf) else (bound,)
    names = set()
    for term in terms:
        if not isinstance(term, Comparison) or not _is_pin(term):
            raise InvalidArgumentError(
                f"{RETAIN}: the condition of {text!r} must compare columns with values by =, IN or IS NULL, joined "
                "by AND, because old rows are deleted without reading them. Nothing was changed. For other "
                "conditions, write several rules, separated by ';'."
            )
        names.add(term.name)
    return frozenset(names)


def _is_pin(term: Comparison) -> bool:
    return term.operator in _PINS and len(term.path) == 1 and not term.is_float


def _unit_of(column_type: PrimitiveType) -> Literal["D", "us", "ns"]:
    return "D" if isinstance(column_type, DateType) else moment_unit(column_type)


def _unreadable(text: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f'table property {RETAIN} must be rules such as "ts: 30 days" or "ts: 7 days where region = \'EU\'", '
        f"separated by ';', not {text!r}. Nothing was changed."
    )
