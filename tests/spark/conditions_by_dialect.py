"""Values and conditions in three forms: Spark SQL, DuckDB SQL, and their meaning in Python."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from tableformat.testing.key_order import Row, sort_key
from tableformat.testing.strategies import IDS, INT_MAX, INT_MIN

SPARK: Final = "spark"
DUCKDB: Final = "duckdb"
Truth: TypeAlias = Callable[[Row], bool | None]
_UTC: Final = dt.UTC
_FLOAT_MAX: Final = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of column and values of it, few and nasty."""

    spark: str
    duckdb: str
    values: tuple[Any, ...]

    def type_in(self, dialect: str) -> str:
        return self.spark if dialect == SPARK else self.duckdb


KINDS: Final[dict[str, Kind]] = {
    "string": Kind("STRING", "VARCHAR", (*IDS, "'", "\\", "b%_")),
    "bigint": Kind("BIGINT", "BIGINT", (0, 1, -1, 2, INT_MIN, INT_MAX)),
    "int": Kind("INT", "INTEGER", (0, 1, -1, 7, -(2**31), 2**31 - 1)),
    "double": Kind("DOUBLE", "DOUBLE", (-0.0, 0.0, math.nan, math.inf, -math.inf, 5e-324, 1.5)),
    "float": Kind("FLOAT", "FLOAT", (-0.0, 0.0, math.nan, math.inf, 0.5, -_FLOAT_MAX, 2.0**-149)),
    "decimal": Kind(
        "DECIMAL(9,2)", "DECIMAL(9,2)", tuple(map(Decimal, ("0.00", "-0.01", "1.50", "-9999999.99", "9999999.99")))
    ),
    "wide": Kind(
        "DECIMAL(30,3)", "DECIMAL(30,3)", tuple(map(Decimal, ("0.000", "-1.500", "123456789012345678901.125")))
    ),
    "date": Kind(
        "DATE",
        "DATE",
        (dt.date(1, 1, 1), dt.date(1500, 3, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date.max),
    ),
    "timestamp_ntz": Kind(
        "TIMESTAMP_NTZ",
        "TIMESTAMP",
        (
            dt.datetime(1, 1, 1),
            dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
            dt.datetime(2024, 2, 29),
            dt.datetime.max,
        ),
    ),
    "timestamp": Kind(
        "TIMESTAMP",
        "TIMESTAMPTZ",
        tuple(
            moment.replace(tzinfo=_UTC)
            for moment in (dt.datetime(1582, 10, 4, 12), dt.datetime(1970, 1, 1), dt.datetime(2024, 2, 29, 1, 2, 3, 4))
        ),
    ),
    "binary": Kind("BINARY", "BLOB", (b"", b"\x00", b"a\x00", b"\xff", b"\x7f")),
    "boolean": Kind("BOOLEAN", "BOOLEAN", (True, False)),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column; its name changes, and the model knows it by its `ident`."""

    ident: str
    name: str
    kind: str

    def told(self, dialect: str, alias: str = "") -> str:
        return f"{alias}{quoted(self.name, dialect)}"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a row."""

    text: Callable[[str, str], str]
    """The SQL in a dialect, with what stands before each column."""
    truth: Truth
    """None is unknown."""

    def matches(self, row: Row) -> bool:
        return self.truth(row) is True


def quoted(name: str, dialect: str) -> str:
    mark = "`" if dialect == SPARK else '"'
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"


def literal(value: Any, kind: str, dialect: str) -> str:  # noqa: PLR0911 (one a type)
    """A value as SQL that has exactly the kind's type."""
    type_name = KINDS[kind].type_in(dialect)
    if value is None:
        return f"CAST(NULL AS {type_name})"
    match kind:
        case "string":
            return _text(value, dialect)
        case "binary":
            return f"X'{value.hex()}'" if dialect == SPARK else f"unhex('{value.hex()}')"
        case "boolean":
            return str(value).lower()
        case "double" | "float":
            name = "NaN" if math.isnan(value) else repr(value).replace("inf", "Infinity")
            return f"CAST('{name}' AS {type_name})"
        case "date":
            return f"DATE '{value.isoformat()}'"
        case "timestamp" | "timestamp_ntz":
            return f"{type_name} '{value.isoformat(sep=' ')}'"
    return f"CAST('{value}' AS {type_name})"


def _text(value: str, dialect: str) -> str:
    if dialect == SPARK:
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\x00", "\\u0000") + "'"
    pieces = ["'" + piece.replace("'", "''") + "'" for piece in value.split("\x00")]
    return "(" + " || chr(0) || ".join(pieces) + ")"


def values_of(column: Column) -> st.SearchStrategy[Any]:
    """Values that are there; half of the time one of the first three."""
    known = KINDS[column.kind].values
    return st.sampled_from(known[:3]) | st.sampled_from(known)


def conditions(columns: Sequence[Column]) -> st.SearchStrategy[Condition]:
    """Any condition."""
    leaf = st.sampled_from(list(columns)).flatmap(_leaves)
    pair = st.builds(_and, leaf, leaf)
    return st.one_of(leaf, leaf, pair, st.builds(_or, pair, leaf), st.builds(_negated, leaf), st.builds(_negated, pair))


def key_conditions(key: Sequence[Column]) -> st.SearchStrategy[Condition]:
    """Prefixes of the key, intervals below them, equality: what is deleted without a look."""
    first, second = key[0], key[-1]
    prefix = values_of(first).map(lambda value: _compare(first, "=", value))
    interval = st.builds(
        lambda low, high: _and(_compare(second, ">=", low), _compare(second, "<", high)),
        values_of(second),
        values_of(second),
    )
    point = values_of(second).map(lambda value: _compare(second, "=", value))
    beyond = values_of(first).map(lambda value: _compare(first, ">", value))
    return st.one_of(
        prefix,
        point,
        interval,
        beyond,
        st.builds(_and, prefix, interval),
        st.builds(_and, prefix, point),
        st.builds(_or, st.builds(_and, prefix, point), st.builds(_and, prefix, interval)),
        st.lists(values_of(first), min_size=1, max_size=3).map(lambda values: _is_in(first, values, False)),
    )


def _leaves(column: Column) -> st.SearchStrategy[Condition]:
    comparison = st.builds(
        lambda operator, value: _compare(column, operator, value),
        st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]),
        values_of(column),
    )
    found = [
        comparison,
        comparison,
        _memberships(column),
        st.just(_is_null(column)),
        st.just(_negated(_is_null(column))),
    ]
    if column.kind == "string":
        found.append(st.builds(lambda name, value: _text_search(column, name, value), _SEARCHES, values_of(column)))
    if column.kind in ("double", "float"):
        found.append(st.just(_is_nan(column)))
    if column.kind in ("bigint", "int"):
        found.append(st.integers(0, 2).map(lambda rest: _remainder(column, rest)))
    if column.kind in _OTHER_LITERALS:
        other = st.sampled_from(_OTHER_LITERALS[column.kind])
        found.append(
            st.builds(
                lambda operator, each: _compare_other(column, operator, *each), st.sampled_from(list(_OPERATORS)), other
            )
        )
    if column.kind == "bigint":
        found.append(
            st.sampled_from(["=", "<>"]).map(lambda operator: _compare_other(column, operator, *_ABOVE_EVERY_BIGINT))
        )
    return st.one_of(found)


def _memberships(column: Column) -> st.SearchStrategy[Condition]:
    value = values_of(column)
    several = st.lists(value | st.none() if column.kind != "boolean" else value, min_size=1, max_size=3)
    return st.builds(lambda values, negated: _is_in(column, values, negated), several, st.booleans())


_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": lambda one, other: one == other,
    "<>": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}
_SEARCHES: Final = st.sampled_from(["startswith", "endswith", "contains"])
_SEARCH_METHODS: Final[dict[str, Callable[[str, str], bool]]] = {
    "startswith": str.startswith,
    "endswith": str.endswith,
    "contains": str.__contains__,
}
_DUCKDB_SEARCHES: Final = {"startswith": "starts_with", "endswith": "ends_with", "contains": "contains"}
_OTHER_LITERALS: Final[dict[str, list[tuple[str, str, Any]]]] = {
    "bigint": [
        ("1.5", "1.5", Decimal("1.5")),
        ("CAST(1 AS INT)", "1::INTEGER", 1),
        ("CAST('NaN' AS DOUBLE)", "CAST('NaN' AS DOUBLE)", math.nan),
        ("CAST(1.5 AS DOUBLE)", "CAST(1.5 AS DOUBLE)", 1.5),
    ],
    "int": [
        ("2147483648", "2147483648", 2**31),
        ("1.5", "1.5", Decimal("1.5")),
        ("-2147483648.5", "-2147483648.5", Decimal("-2147483648.5")),
        ("CAST('Infinity' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)", math.inf),
    ],
    "float": [
        ("CAST(0.1 AS DOUBLE)", "CAST(0.1 AS DOUBLE)", 0.1),
        ("CAST('1e300' AS DOUBLE)", "CAST('1e300' AS DOUBLE)", 1e300),
        ("CAST('NaN' AS DOUBLE)", "CAST('NaN' AS DOUBLE)", math.nan),
    ],
    "decimal": [
        ("1.495", "1.495", Decimal("1.495")),
        ("12345678901.5", "12345678901.5", Decimal("12345678901.5")),
        ("1", "1", 1),
    ],
    "wide": [("-1.5", "-1.5", Decimal("-1.5")), ("0", "0", 0)],
    "date": [
        ("TIMESTAMP_NTZ '2024-02-29 00:00:00'", "TIMESTAMP '2024-02-29 00:00:00'", dt.datetime(2024, 2, 29)),
        ("TIMESTAMP_NTZ '1969-12-31 12:00:00'", "TIMESTAMP '1969-12-31 12:00:00'", dt.datetime(1969, 12, 31, 12)),
    ],
    "timestamp_ntz": [("DATE '2024-02-29'", "DATE '2024-02-29'", dt.datetime(2024, 2, 29))],
}
"""Literals of types other than the column's, which Spark casts or folds before it pushes them down."""
_ABOVE_EVERY_BIGINT: Final = ("9223372036854775808", "9223372036854775808", Decimal(2**63))
"""Compared for equality alone. Of `<`, `<=` and the negations of the others Spark itself, on plain Parquet too, makes a
condition that is true for nulls (4.3, only for BIGINT)."""


def _compare(column: Column, operator: str, value: Any) -> Condition:
    def text(dialect: str, alias: str) -> str:
        sign = "IS NOT DISTINCT FROM" if operator == "<=>" and dialect == DUCKDB else operator
        return f"({column.told(dialect, alias)} {sign} {literal(value, column.kind, dialect)})"

    def truth(row: Row) -> bool | None:
        found = row.get(column.ident)
        if operator == "<=>":
            return sort_key(found) == sort_key(value)
        return None if found is None else _OPERATORS[operator](sort_key(found), sort_key(value))

    return Condition(text, truth)


def _compare_other(column: Column, operator: str, in_spark: str, in_duckdb: str, value: Any) -> Condition:
    def text(dialect: str, alias: str) -> str:
        return f"({column.told(dialect, alias)} {operator} {in_spark if dialect == SPARK else in_duckdb})"

    def truth(row: Row) -> bool | None:
        found = row.get(column.ident)
        if found is None:
            return None
        if isinstance(value, float):
            found = float(found)
        elif isinstance(value, dt.datetime) and not isinstance(found, dt.datetime):
            found = dt.datetime.combine(found, dt.time())
        return _OPERATORS[operator](sort_key(found), sort_key(value))

    return Condition(text, truth)


def _is_in(column: Column, values: Sequence[Any], negated: bool) -> Condition:
    def text(dialect: str, alias: str) -> str:
        listed = ", ".join(literal(value, column.kind, dialect) for value in values)
        return f"({column.told(dialect, alias)} {'NOT ' if negated else ''}IN ({listed}))"

    def truth(row: Row) -> bool | None:
        found = row.get(column.ident)
        if found is None:
            return None
        if sort_key(found) in [sort_key(value) for value in values if value is not None]:
            return not negated
        return None if None in values else negated

    return Condition(text, truth)


def _is_null(column: Column) -> Condition:
    return Condition(
        lambda dialect, alias: f"({column.told(dialect, alias)} IS NULL)", lambda row: row.get(column.ident) is None
    )


def _is_nan(column: Column) -> Condition:
    def text(dialect: str, alias: str) -> str:
        called = f"isnan({column.told(dialect, alias)})"
        return called if dialect == SPARK else f"coalesce({called}, false)"

    def truth(row: Row) -> bool | None:
        found = row.get(column.ident)
        return found is not None and math.isnan(found)

    return Condition(text, truth)


def _text_search(column: Column, name: str, value: str) -> Condition:
    def text(dialect: str, alias: str) -> str:
        called = name if dialect == SPARK else _DUCKDB_SEARCHES[name]
        return f"{called}({column.told(dialect, alias)}, {literal(value, 'string', dialect)})"

    def truth(row: Row) -> bool | None:
        found = row.get(column.ident)
        return None if found is None else _SEARCH_METHODS[name](found, value)

    return Condition(text, truth)


def _remainder(column: Column, rest: int) -> Condition:
    def truth(row: Row) -> bool | None:
        found = row.get(column.ident)
        return None if found is None else math.fmod(abs(found) % 3, 3) == rest

    return Condition(lambda dialect, alias: f"(abs({column.told(dialect, alias)} % 3) = {rest})", truth)


def _and(one: Condition, other: Condition) -> Condition:
    def truth(row: Row) -> bool | None:
        both = (one.truth(row), other.truth(row))
        return False if False in both else None if None in both else True

    return Condition(lambda dialect, alias: f"({one.text(dialect, alias)} AND {other.text(dialect, alias)})", truth)


def _or(one: Condition, other: Condition) -> Condition:
    def truth(row: Row) -> bool | None:
        both = (one.truth(row), other.truth(row))
        return True if True in both else None if None in both else False

    return Condition(lambda dialect, alias: f"({one.text(dialect, alias)} OR {other.text(dialect, alias)})", truth)


def _negated(one: Condition) -> Condition:
    def truth(row: Row) -> bool | None:
        found = one.truth(row)
        return None if found is None else not found

    return Condition(lambda dialect, alias: f"(NOT {one.text(dialect, alias)})", truth)
