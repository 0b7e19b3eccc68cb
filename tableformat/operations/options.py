"""Options of every operation that writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict, Unpack

from tableformat.arguments import check_texts
from tableformat.errors import InvalidArgumentError, UnknownOptionError


class SupportsArrowStream(Protocol):
    """An object that exports a stream of batches, such as a `Scan`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class SupportsArrowArray(Protocol):
    """An object that exports one batch."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow as pa
    import pyarrow.dataset as ds

    RowsLike: TypeAlias = (
        pa.Table
        | pa.RecordBatch
        | pa.RecordBatchReader
        | ds.Dataset
        | pandas.DataFrame
        | polars.DataFrame
        | polars.LazyFrame
        | duckdb.DuckDBPyRelation
        | Mapping[str, Any]
        | Iterable[Any]
        | SupportsArrowStream
        | SupportsArrowArray
    )
else:
    RowsLike: TypeAlias = Any
"""Rows: Arrow data, data frames, a DuckDB relation, dicts, iterables of these, and objects that export Arrow data. The
type is for type checkers; `as_reader` accepts or refuses a value."""


class CommitKeywords(TypedDict, total=False):
    """The keyword arguments of every operation that writes; see CommitOptions."""

    application_id: str | None
    batch_id: int | str | None
    snapshot_properties: Mapping[str, str] | None
    if_unchanged_since: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOptions:
    """How the snapshot of an operation is committed."""

    application_id: str | None = None
    """The name of the writer. Together with `batch_id`, the batch is committed once, no matter how often the call is
    repeated."""
    batch_id: int | str | None = None
    """Whole numbers increase from batch to batch; text is compared with the last one for equality."""
    snapshot_properties: Mapping[str, str] | None = None
    """Added to the summary of the snapshot."""
    if_unchanged_since: int | None = None
    """CP-83: raises ScopeChangedError if rows that the operation deletes or reads were added after this snapshot. -1
    means a branch without snapshots."""
    is_staged: bool = False
    """SP-23: the snapshot is not put on a branch; it will be published later."""

    @classmethod
    def of(cls, verb: str, own: Iterable[str] = (), **keywords: Unpack[CommitKeywords]) -> CommitOptions:
        """The options of one call. Raises UnknownOptionError for a name that is neither an option nor an argument of
        the operation, InvalidArgumentError for properties that cannot be added to a summary (FM-23)."""
        from tableformat.commit.snapshot_summary import check_own_names

        known = CommitKeywords.__annotations__
        for name in keywords:
            if name not in known:
                raise UnknownOptionError(name, (*own, *known), where=f"{verb}()")
        options = cls(**keywords)
        check_own_names(options.snapshot_properties or {})
        return options

    def __post_init__(self) -> None:
        if (self.application_id is None) != (self.batch_id is None):
            raise InvalidArgumentError(
                "application_id and batch_id must be passed together: they identify the writer and its batch."
            )
        if not isinstance(self.application_id, str | None) or not isinstance(self.batch_id, int | str | None):
            raise InvalidArgumentError(
                f"application_id must be text and batch_id a whole number or text, not {self.application_id!r} and "
                f"{self.batch_id!r}."
            )
        if self.snapshot_properties is not None:
            check_texts(self.snapshot_properties, "snapshot_properties")


def one_of(value: str, allowed: tuple[str, ...], *, option: str) -> str:
    """The value, if it is allowed; otherwise raises InvalidArgumentError."""
    if value not in allowed:
        raise InvalidArgumentError(f"{option} must be one of {', '.join(map(repr, allowed))}, not {value!r}.")
    return value
