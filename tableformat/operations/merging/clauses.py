"""`MergeStatement`: the parts of a merge, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tableformat.errors import InvalidArgumentError


class When(Enum):
    """The rows to which a clause applies."""

    MATCHED = "when_matched"
    """A target row together with its matching source row."""
    NOT_MATCHED = "when_not_matched"
    """A source row without a matching target row."""
    NOT_MATCHED_BY_SOURCE = "when_not_matched_by_source"
    """A target row without a matching source row."""


class Action(Enum):
    """The effect of a clause."""

    UPDATE = "update"
    UPDATE_ALL = "update_all"
    DELETE = "delete"
    INSERT = "insert"
    INSERT_ALL = "insert_all"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClause:
    """One clause. The first clause for a row whose predicate is true applies."""

    when: When
    action: Action
    predicate: str | None = None
    """SQL text over both rows, or over the only one that exists."""
    updates: Mapping[str, Any] = field(default_factory=dict)
    """New values by column of the target, for UPDATE and INSERT. Text is a SQL expression, anything else a value."""
    except_columns: tuple[str, ...] = ()
    """Columns of the source that UPDATE_ALL and INSERT_ALL leave out."""

    @property
    def name(self) -> str:
        """The name of the method that makes such a clause."""
        return f"{self.when.value}_{self.action.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeStatement:
    """A merge without its rows: the condition and the clauses."""

    on: tuple[str, ...] | str
    """Columns of both sides that must be equal, or SQL text."""
    source_alias: str = "source"
    target_alias: str = "target"
    clauses: tuple[MergeClause, ...] = ()

    def __post_init__(self) -> None:
        aliases = (self.source_alias.lower(), self.target_alias.lower())
        if not all(aliases) or aliases[0] == aliases[1]:
            raise InvalidArgumentError(
                f"source_alias and target_alias must be two different names, not {self.source_alias!r} and "
                f"{self.target_alias!r}."
            )
        if not self.on:
            raise InvalidArgumentError("on= must be a list of the columns by which rows match, or SQL text: on=['id'].")

    def of(self, when: When) -> tuple[tuple[int, MergeClause], ...]:
        """The clauses for such rows, with their positions in the statement."""
        return tuple((place, clause) for place, clause in enumerate(self.clauses) if clause.when is when)

    def has(self, when: When) -> bool:
        return bool(self.of(when))

    @property
    def may_match_many(self) -> bool:
        """CP-28: whether a target row may match several source rows. This is allowed if matched rows are unchanged, or
        always deleted."""
        matched = [clause for _, clause in self.of(When.MATCHED)]
        return not matched or (
            len(matched) == 1 and matched[0].action is Action.DELETE and matched[0].predicate is None
        )
