"""Hypothesis strategies for tables: few values, all of them edge cases, so that keys coincide and bounds match rows."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Final

import pyarrow as pa
from hypothesis import strategies as st
from pyiceberg.expressions import (
    And,
    BooleanExpression,
    EqualTo,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    Not,
    Reference,
)
from pyiceberg.expressions.literals import literal

from tableformat.testing.key_order import Row, Values, sort_key, sort_keys

SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("number", pa.int64(), nullable=False),
        ("at", pa.timestamp("us")),
        ("ratio", pa.float64()),
        ("note", pa.string()),
        ("row", pa.int64()),
    ]
)
"""`row` distinguishes rows with equal keys: a test counts it up."""
KEY: Final = ("id", "number")

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
IDS: Final = ("a", "a\x00", "", "\x00", "a\x00b", "ab", "\uffff", "\U00010000")
"""Each is a prefix of another, contains a zero byte, or sorts differently by UTF-16 than by code point."""
NUMBERS: Final = (0, 1, -1, INT_MIN, INT_MAX)
TIMES: Final = (
    None,
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(1970, 1, 1),
    dt.datetime(2026, 11, 21, 12),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
)
RATIOS: Final = (None, -0.0, 0.0, math.nan, math.inf, -math.inf, 5e-324)
NOTES: Final = (None, "", "\x00", "b")
_VALUES: Final[dict[str, Sequence[Any]]] = {
    "id": IDS,
    "number": NUMBERS,
    "at": TIMES,
    "ratio": RATIOS,
    "note": NOTES,
}
_HOT_KEYS: Final = (("a", 0), ("a\x00", 0), ("a", 1))
"""Half of all keys, so that later operations meet rows of earlier ones."""
_RANGE_COLUMNS: Final = (
    KEY,
    ("at",),
    ("ratio",),
    ("note",),
    ("note", "number"),
    ("number", "at"),
    ("ratio", "id"),
)
_EQUALITY_COLUMNS: Final = (KEY, ("note",), ("at",), ("note", "number"), ("note", "at"), ("id",))
"""Never floating point (DA-5)."""


@dataclass(frozen=True, slots=True)
class Range:
    """before(lower) .. before(upper) of some columns."""

    on: tuple[str, ...]
    lower: Values | None
    upper: Values | None


@dataclass(frozen=True, slots=True, repr=False)
class Filter:
    """One condition in two forms."""

    expression: BooleanExpression
    truth: Callable[[Row], bool | None]
    """The condition for a row. None is unknown, which does not match."""

    def matches(self, row: Row) -> bool:
        return self.truth(row) is True

    def __repr__(self) -> str:
        return str(self.expression)


def keys() -> st.SearchStrategy[Values]:
    """Whole keys."""
    return st.sampled_from(_HOT_KEYS) | st.tuples(st.sampled_from(IDS), st.sampled_from(NUMBERS))


def rows(*, min_size: int = 1, max_size: int = 4) -> st.SearchStrategy[list[Row]]:
    """Rows without the column `row`."""
    row = st.builds(
        lambda key, at, ratio, note: {"id": key[0], "number": key[1], "at": at, "ratio": ratio, "note": note},
        keys(),
        _value("at"),
        _value("ratio"),
        _value("note"),
    )
    return st.lists(row, min_size=min_size, max_size=max_size)


def prefixes() -> st.SearchStrategy[list[Row]]:
    """Prefixes of the key, all of one length."""
    whole = st.lists(keys(), min_size=1, max_size=2)
    return st.builds(
        lambda found, names: [dict(zip(names, key, strict=False)) for key in found],
        whole,
        st.sampled_from([KEY[:1], KEY]),
    )


def ranges() -> st.SearchStrategy[Range]:
    """Ranges of the key or of nullable columns, including open bounds and prefixes. Lower is never above upper."""
    return st.sampled_from(_RANGE_COLUMNS).flatmap(_ranges_of)


def equal_rows() -> st.SearchStrategy[list[Row]]:
    """Arguments of `delete_rows`: values of some columns, the same columns in every row."""
    return st.sampled_from(_EQUALITY_COLUMNS).flatmap(
        lambda names: st.lists(st.fixed_dictionaries({name: _value(name) for name in names}), min_size=1, max_size=2)
    )


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    """Conditions of all forms that the library treats differently: key prefixes, intervals, points, all others."""
    return draw(_FILTERS)


def filter_of_key(row: Row) -> Filter:
    """A condition on the key columns that matches rows with the key of this row."""
    return reduce(_and, (_is_among(name, [row[name]]) for name in KEY))


def table_of(found: Iterable[Row]) -> pa.Table:
    """Rows as Arrow in the types of the table. At least one row is needed; the first one determines the columns."""
    listed = [dict(row) for row in found]
    return pa.Table.from_pylist(listed, schema=pa.schema([SCHEMA.field(name) for name in listed[0]]))


def _ranges_of(on: tuple[str, ...]) -> st.SearchStrategy[Range]:
    whole = st.tuples(*(st.sampled_from(_VALUES[name]) for name in on))
    bound = st.none() | st.builds(lambda values, depth: values[:depth], whole, st.integers(1, len(on)))
    return st.builds(partial(_in_order, on), bound, bound)


def _in_order(on: tuple[str, ...], one: Values | None, other: Values | None) -> Range:
    if one is not None and other is not None and sort_keys(one) > sort_keys(other):
        return Range(on, other, one)
    return Range(on, one, other)


def _value(name: str) -> st.SearchStrategy[Any]:
    """A value of the column; half of them are null if that is allowed."""
    values = st.sampled_from(_VALUES[name])
    return st.none() | values if None in _VALUES[name] else values


def _comparison(name: str) -> st.SearchStrategy[Filter]:
    return st.builds(partial(_compare, name), _literals(name), st.booleans())


def _compare(name: str, value: Any, below: bool) -> Filter:
    def truth(row: Row) -> bool | None:
        return None if row[name] is None else (sort_key(row[name]) < sort_key(value)) is below

    term, bound = Reference(name), literal(_spelled(value))
    return Filter(LessThan(term=term, value=bound) if below else GreaterThanOrEqual(term=term, value=bound), truth)


def _membership(name: str) -> st.SearchStrategy[Filter]:
    return st.builds(partial(_is_among, name), st.lists(_literals(name), min_size=1, max_size=2, unique=True))


def _is_among(name: str, values: list[Any]) -> Filter:
    literals = {literal(_spelled(value)) for value in values}
    term = Reference(name)
    expression = EqualTo(term=term, value=literals.pop()) if len(literals) == 1 else In(term=term, values=literals)
    return Filter(expression, lambda row: None if row[name] is None else row[name] in values)


def _key_interval() -> st.SearchStrategy[Filter]:
    """A prefix of the key and an interval of its next column, which become one span."""
    prefix = st.sampled_from(IDS).map(lambda value: _is_among("id", [value]))
    return st.builds(_and, prefix, st.builds(_and, _comparison("number"), _comparison("number")))


def _literals(name: str) -> st.SearchStrategy[Any]:
    """Values for comparisons in filters. NaN is left out: it needs IS NAN."""
    return st.sampled_from([value for value in _VALUES[name] if value is not None and sort_key(value) != (2,)])


def _spelled(value: Any) -> Any:
    """A value in the form that PyIceberg accepts for a literal."""
    return value.isoformat() if isinstance(value, dt.datetime) else value


_FIXED_FILTERS: Final = (
    Filter(IsNull(term=Reference("note")), lambda row: row["note"] is None),
    Filter(IsNull(term=Reference("at")), lambda row: row["at"] is None),
    Filter(IsNaN(term=Reference("ratio")), lambda row: None if row["ratio"] is None else math.isnan(row["ratio"])),
)


def _and(one: Filter, other: Filter) -> Filter:
    def truth(row: Row) -> bool | None:
        both = (one.truth(row), other.truth(row))
        return False if False in both else None if None in both else True

    return Filter(And(one.expression, other.expression), truth)


def _or(one: Filter, other: Filter) -> Filter:
    return _not(_and(_not(one), _not(other)))


def _not(one: Filter) -> Filter:
    def truth(row: Row) -> bool | None:
        found = one.truth(row)
        return None if found is None else not found

    return Filter(Not(one.expression), truth)


def _filters() -> st.SearchStrategy[Filter]:
    name = st.sampled_from(sorted(_VALUES))
    leaf = st.one_of(name.flatmap(_comparison), name.flatmap(_membership), st.sampled_from(_FIXED_FILTERS))
    both = st.builds(_and, leaf, leaf)
    return st.one_of(leaf, _key_interval(), both, st.builds(_or, both, leaf), st.builds(_not, leaf))


_FILTERS: Final = _filters()
