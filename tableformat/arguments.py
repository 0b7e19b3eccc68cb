"""Checks that the arguments of public calls have the types in their signatures.

`checked_arguments` wraps a function, `checked_methods` the public methods of a class. The annotations define the
checks: `str` is text that UTF-8 can encode, `int` is a whole number (NumPy's included, but not a bool), `Sequence[str]`
is a collection of texts. A single text in place of several is left to the callee, which can say how to write it; so is
`Any`. Keywords that are annotated together (`Unpack`) are checked one by one; the callee refuses unknown names.
"""

from __future__ import annotations

import datetime
import functools
import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

from tableformat.errors import InvalidArgumentError, nearest_option_hint

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Kind = TypeVar("_Kind", bound=type)
_SHOWN_CHARACTERS = 80


def checked_methods(kind: _Kind) -> _Kind:
    """A class decorator: the public methods that the class itself defines check their arguments."""
    for name, method in list(vars(kind).items()):
        if not name.startswith("_") and inspect.isfunction(method):
            setattr(kind, name, checked_arguments(method))
    return kind


def checked_arguments(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Raises InvalidArgumentError for an argument that does not fit its annotation, and TypeError for a wrong number of
    arguments or an unknown name."""
    signature = inspect.signature(function)
    named = [
        each.name
        for each in signature.parameters.values()
        if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    keywords = next((each.name for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD), None)

    @functools.cache
    def annotations() -> dict[str, Any]:
        named = {name: each for name, each in signature.parameters.items() if _is_checked(each)}
        scope = inspect.unwrap(function).__globals__
        resolved = {name: _resolved(parameter.annotation, scope) for name, parameter in named.items()}
        together = resolved.pop(keywords, None) if keywords is not None else None
        return resolved | (typing.get_type_hints(typing.get_args(together)[0]) if _is_unpacked(together) else {})

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            _refuse_unknown(function, kwargs, [*named, *annotations()])
            return function(*args, **kwargs)  # Python's own error names the function.
        given |= given.pop(keywords, {}) if keywords is not None else {}
        for name, annotation in annotations().items():
            if name in given and not _fits(given[name], annotation):
                told = f"{name} must be {_told(annotation)}, not {shown(given[name])}."
                raise InvalidArgumentError(told + _hint(name, given[name], annotation))
        return function(*args, **kwargs)

    return call


def _refuse_unknown(function: Callable[..., Any], kwargs: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise TypeError with the nearest name for an unknown keyword, which is the reason why others seem to be
    missing."""
    unknown = next((name for name in kwargs if name not in known), None)
    if unknown is not None:
        near = nearest_option_hint(unknown, [name for name in dict.fromkeys(known) if name != "self"])
        raise TypeError(f"{function.__name__}() got an unexpected keyword argument {unknown!r}.{near}")


def check_texts(values: Mapping[Any, Any], what: str) -> None:
    """Raise InvalidArgumentError unless this is a mapping of texts to texts. `what` is its name in the plural."""
    if not isinstance(values, Mapping):
        raise InvalidArgumentError(f"{what} must be a mapping of text to text, not {shown(values)}.")
    for name, value in values.items():
        if not _is_text(name):
            raise InvalidArgumentError(f"{what} must be text, but the name {shown(name)} is not.")
        if not _is_text(value):
            hint = f" Write {name!r}: {str(value).lower()!r}." if isinstance(value, bool | int | float) else ""
            raise InvalidArgumentError(f"{what} must be text, but {name!r} is {shown(value)}.{hint}")


def _is_checked(parameter: inspect.Parameter) -> bool:
    return parameter.kind is not parameter.VAR_POSITIONAL and parameter.annotation is not parameter.empty


def _is_unpacked(annotation: Any) -> bool:
    return typing.get_origin(annotation) is typing.Unpack


def _resolved(annotation: Any, scope: dict[str, Any]) -> Any:
    """The type of a textual annotation in the function's module. Any for a type of a package that is imported only for
    type checkers; the callee checks its values."""
    try:
        return eval(annotation, scope) if isinstance(annotation, str) else annotation
    except NameError:
        return Any


def _fits(value: Any, annotation: Any) -> bool:
    if annotation is None:
        return value is None
    if annotation in _SCALARS:
        return _SCALARS[annotation][1](value)
    origin = typing.get_origin(annotation) or annotation
    if origin in _GENERICS:
        return _GENERICS[origin](value, annotation)
    if getattr(origin, "_is_protocol", False) and "__call__" in vars(origin):
        return callable(value)
    return not isinstance(origin, type) or isinstance(value, origin)


def _is_one_of(value: Any, annotation: Any) -> bool:
    return any(_fits(value, choice) for choice in typing.get_args(annotation))


def _are_several(values: Any, annotation: Any) -> bool:
    """A set, a list, an array: it can be iterated more than once and has a length. Not a mapping, whose values would be
    ignored. The callee handles a text in place of a list of texts, because it knows what was meant."""
    if isinstance(values, Mapping):
        return False
    if isinstance(values, str):
        of = next(iter(typing.get_args(annotation)), Any)
        return of is Any or _fits(values, of)
    is_collection = hasattr(values, "__len__") and hasattr(values, "__iter__") and not isinstance(values, bytes)
    return is_collection and _items_fit(values, annotation)


def _items_fit(values: Any, annotation: Any) -> bool:
    of = next(iter(typing.get_args(annotation)), Any)
    return of is Any or all(_fits(value, of) for value in values)


_GENERICS: dict[Any, Callable[[Any, Any], bool]] = {
    typing.Union: _is_one_of,
    types.UnionType: _is_one_of,
    Sequence: _are_several,
    Collection: _are_several,
    tuple: lambda value, annotation: isinstance(value, tuple) and _items_fit(value, annotation),
    Mapping: lambda value, _annotation: isinstance(value, Mapping),
    Callable: lambda value, _annotation: callable(value),
}


def _is_text(value: Any) -> bool:
    """Lone surrogates are not text: UTF-8 cannot encode them."""
    return isinstance(value, str) and value.encode(errors="ignore").decode() == value


_SCALARS: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    Any: ("anything", lambda _value: True),
    object: ("anything", lambda _value: True),
    str: ("text", _is_text),
    bool: ("True or False", lambda value: isinstance(value, bool) or type(value).__name__ == "bool_"),
    int: ("a whole number", lambda value: isinstance(value, Integral) and not isinstance(value, bool)),
    float: ("a number", lambda value: isinstance(value, Real) and not isinstance(value, bool)),
}


def _hint(name: str, value: Any, annotation: Any) -> str:
    """A hint for one value in place of several, names with values in place of names, or a day in place of a moment."""
    if type(value) is datetime.date:
        return f" Write it as text, {value.isoformat()!r}, or as a datetime."
    for choice in typing.get_args(annotation) if typing.get_origin(annotation) in _UNIONS else (annotation,):
        items = typing.get_args(choice) if typing.get_origin(choice) in (Sequence, Collection) else ()
        if items and isinstance(value, Mapping):
            return f" Pass only the names: {name}={list(value)!r}."
        if items and (_is_single(value) if items[0] is Any else _fits(value, items[0])):
            return f" Put it in a list: [{name}]."
    return ""


def _is_single(value: Any) -> bool:
    return value is not None and not hasattr(value, "__iter__")


_UNIONS = (typing.Union, types.UnionType)


def _told(annotation: Any) -> str:
    """The expected type, in words."""
    return " or ".join(dict.fromkeys(_choices(annotation)))


def _choices(annotation: Any) -> Iterator[str]:
    if annotation is None or annotation is types.NoneType:
        yield "None"
    elif annotation in _SCALARS:
        yield _SCALARS[annotation][0]
    elif typing.get_origin(annotation) in _UNIONS:
        for choice in typing.get_args(annotation):
            yield from _choices(choice)
    elif typing.get_origin(annotation) in (Sequence, Collection, tuple):
        of = next(iter(typing.get_args(annotation)), Any)
        yield "a list" if of is Any else f"a list with each item {_told(of)}"
    elif typing.get_origin(annotation) in (Mapping, dict):
        yield "a mapping"
    else:
        name = getattr(annotation, "__name__", str(annotation))
        yield _EXPRESSIONS.get(name, f"a {name}")


_EXPRESSIONS = {
    "BooleanExpression": "a PyIceberg expression",
    "Expression": "a pyarrow.compute expression",
    "PolarsExpression": "a Polars expression",
}
"""The types that `where=` takes besides SQL text."""


def shown(value: Any) -> str:
    """The value and its type in one line, for any nesting and for objects whose `repr` fails."""
    if isinstance(value, str):
        return f"the text {value!r:.{_SHOWN_CHARACTERS}}"
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 -- the object is a stranger's, and the message is about the argument.
        text = "an object"
    return f"{text[:_SHOWN_CHARACTERS]} ({type(value).__name__})"
