"""Options that every writing verb takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypedDict, Unpack

from tableformat.arguments import check_texts
from tableformat.commit.snapshot_summary import check_own_names
from tableformat.errors import InvalidArgumentError, UnknownOptionError


class CommitKeywords(TypedDict, total=False):
    """The keyword arguments of every writing verb; their meaning is CommitOptions'."""

    application_id: str | None
    batch_id: int | str | None
    snapshot_properties: Mapping[str, str] | None
    if_unchanged_since: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOptions:
    """How a verb's snapshot is committed."""

    application_id: str | None = None
    """Names the writer; with `batch_id` the batch is committed once, however often the call is repeated."""
    batch_id: int | str | None = None
    """Whole numbers rise from batch to batch; text is compared for equality with the last one."""
    snapshot_properties: Mapping[str, str] | None = None
    """Added to the snapshot's summary."""
    if_unchanged_since: int | None = None
    """CP-83: ScopeChangedError if rows came into what the operation deletes or reads after this snapshot; -1 stands for
    a branch without snapshots."""
    is_staged: bool = False
    """SP-23: no branch moves to the snapshot, which somebody will publish."""

    @classmethod
    def of(cls, verb: str, own: Iterable[str] = (), **keywords: Unpack[CommitKeywords]) -> CommitOptions:
        """The options of one call. UnknownOptionError for a name that is neither one of them nor of the verb's own,
        InvalidArgumentError for what cannot be added to a summary (FM-23)."""
        known = CommitKeywords.__annotations__
        for name in keywords:
            if name not in known:
                raise UnknownOptionError(name, (*own, *known), where=f"{verb}()")
        options = cls(**keywords)
        check_own_names(options.snapshot_properties or {})
        return options

    def __post_init__(self) -> None:
        if (self.application_id is None) != (self.batch_id is None):
            raise InvalidArgumentError("application_id and batch_id go together: name the writer and its batch.")
        if not isinstance(self.application_id, str | None) or not isinstance(self.batch_id, int | str | None):
            raise InvalidArgumentError(
                f"application_id is text and batch_id a whole number or text, not {self.application_id!r} and "
                f"{self.batch_id!r}."
            )
        if self.snapshot_properties is not None:
            check_texts(self.snapshot_properties, "snapshot_properties")


def one_of(value: str, allowed: tuple[str, ...], *, option: str) -> str:
    """The value, when it is one of the allowed ones."""
    if value not in allowed:
        raise InvalidArgumentError(f"{option} must be one of {', '.join(map(repr, allowed))}, not {value!r}.")
    return value
