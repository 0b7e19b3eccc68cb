"""Arguments of CALL as Python values."""

from __future__ import annotations

from typing import Any

from spark_ext.service.wire.expressions import NoValueError, literal_value
from tableformat.errors import InvalidArgumentError


class Struct(tuple[tuple[str, Any], ...]):
    """Fields and their values, in order: a name may occur twice, or be Spark's own, such as `col1`."""

    __slots__ = ()


def python_value(value: dict[str, Any]) -> Any:
    """A value as `ValueJson` of the Java side writes it: arrays are lists, maps are dicts, structs are Structs.

    InvalidArgumentError for a value that Python has no counterpart of, such as an interval.
    """
    if "array" in value:
        return [python_value(each) for each in value["array"]]
    if "map" in value:
        return {python_value(key): python_value(each) for key, each in value["map"]}
    if "struct" in value:
        return Struct((name, python_value(each)) for name, each in value["struct"])
    if value["literal"] is None:
        return None
    try:
        return literal_value(value)
    except NoValueError as error:
        raise InvalidArgumentError(
            f"{value['literal']!r} of Spark's type {value['type']} cannot be an argument of a procedure."
        ) from error
