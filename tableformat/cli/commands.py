"""The classes of commands and groups, whose help names a type only where it says something."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> Any:
        return without_obvious_types(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands."""

    def get_params(self, ctx: Any) -> Any:
        return without_obvious_types(super().get_params(ctx))


def without_obvious_types(params: Any) -> Any:
    """Typer prints `<bool>` after a flag, as if it took a value, and `<str>` after a named argument."""
    for each in params:
        if getattr(each, "is_bool_flag", False) or (each.param_type_name == "argument" and each.metavar):
            each.display_type_rich = _no_type
    return params


def _no_type(ctx: Any) -> None:  # noqa: ARG001  typer's signature
    return None
