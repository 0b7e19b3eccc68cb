"""`MergeStatement`: what a merge was asked to do, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tableformat.errors import InvalidArgumentError


class When(Enum):
    """Which rows a clause is for."""

    MATCHED = "when_matched"
    """A target row with the source row that matches it."""
    NOT_MATCHED = "when_not_matched"
    """A source row that no target row matches."""
    NOT_MATCHED_BY_SOURCE = "when_not_matched_by_source"
    """A target row that no source row matches."""


class Action(Enum):
    """What a clause does."""

    UPDATE = "update"
    UPDATE_ALL = "update_all"
    DELETE = "delete"
    INSERT = "insert"
    INSERT_ALL = "insert_all"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClause:
    """One clause. Of those for a row the first one whose predicate is true is carried out."""

    when: When
    action: Action
    predicate: str | None = None
    """SQL text over both rows, or over the one that there is."""
    updates: Mapping[str, Any] = field(default_factory=dict)
    """By column of the target: text is a SQL expression, anything else the value. For UPDATE and INSERT."""
    except_columns: tuple[str, ...] = ()
    """Columns of the source that UPDATE_ALL and INSERT_ALL leave out."""

    @property
    def name(self) -> str:
        """The method that makes such a clause."""
        return f"{self.when.value}_{self.action.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStatement:
    """What is merged how, apart from the rows."""

    on: tuple[str, ...] | str
    """Columns that both sides have and that are equal, or SQL text."""
    source_alias: str = "source"
    target_alias: str = "target"
    clauses: tuple[MergeClause, ...] = ()

    def __post_init__(self) -> None:
        aliases = (self.source_alias.lower(), self.target_alias.lower())
        if not all(aliases) or aliases[0] == aliases[1]:
            raise InvalidArgumentError(
                f"source_alias and target_alias are two names, not {self.source_alias!r} and {self.target_alias!r}."
            )
        if not self.on:
            raise InvalidArgumentError("on= names the columns by which rows match, or is SQL text: on=['id'].")

    def of(self, when: When) -> tuple[tuple[int, MergeClause], ...]:
        """The clauses for such rows, with their places in the statement."""
        return tuple((place, clause) for place, clause in enumerate(self.clauses) if clause.when is when)

    def has(self, when: When) -> bool:
        return bool(self.of(when))

    @property
    def may_match_many(self) -> bool:
        """CP-28: whether a target row may match several source rows: it is left alone, or deleted whatever they say."""
        matched = [clause for _, clause in self.of(When.MATCHED)]
        return not matched or (
            len(matched) == 1 and matched[0].action is Action.DELETE and matched[0].predicate is None
        )
