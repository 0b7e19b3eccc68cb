"""The errors of this library, in one tree.

    TableFormatError
    ├── InvalidArgumentError            the arguments of the call are invalid
    │   ├── UnknownColumnError          a column that the schema does not have
    │   ├── UnknownOptionError          an option or property that does not exist
    │   ├── InvalidPredicateError       a filter that cannot be applied to this table
    │   ├── InvalidKeyError             a key, prefix or bound that does not fit the key
    │   └── SchemaMismatchError         rows whose schema does not fit the table
    ├── NotFoundError
    │   ├── CatalogNotFoundError
    │   ├── NamespaceNotFoundError
    │   ├── TableNotFoundError
    │   ├── ViewNotFoundError
    │   ├── SnapshotNotFoundError       a snapshot, tag or branch
    │   ├── ConsumerNotFoundError       a consumer of the change feed
    │   └── RowNotFoundError            a stored row that a change event deletes
    ├── AlreadyExistsError
    ├── RowsRefusedError                rows that do not fit the schema; has a report
    │   └── UncoveredRowsError          rows outside of all range partitions
    ├── DuplicateKeyError               a key occurs twice, but has to be unique
    ├── StaleRowsError                  rows are older than the stored ones, and `on_stale` is "error"
    ├── AlreadyCommittedError           staged files that were committed before
    ├── BatchPartlyAppliedError         some tables of a transaction have its batch, others do not
    ├── CommitConflictError             another commit changed what this one relied on
    │   └── ScopeChangedError           rows came into the scope after the snapshot of `if_unchanged_since`
    ├── RevertConflictError             a later commit changed the rows of a commit that is to be reverted
    ├── CommitStateUnknownError         it is unknown whether the commit happened; no file was removed
    │   ├── PartialCommitError          a catalog server applied a commit of several tables to some of them
    │   ├── CommitInterruptedError      a KeyboardInterrupt during the request to the catalog
    │   └── CommitExitError             a SystemExit during the request, raised by a signal handler for example
    ├── PublishRefusedError             the target of a publish has changes that cannot be carried to the branch
    ├── OperationCancelledError         the caller stopped waiting; the operation committed nothing more
    ├── TaskFailedError                 a task of a job failed after all its retries
    ├── StorageError                    files or the catalog could not be reached
    │   └── ReadOnlyLakeError           a change of a lake that cannot be written
    ├── CorruptFileError                a file whose content is not valid
    └── UnsupportedFeatureError         a valid table that this version cannot read or write
        ├── SeveralTablesError          a transaction over several tables in a catalog that cannot commit them at once
        ├── CopiedLakeError             a table of another lake; it can be read but not written
        └── MovedLakeError              a table whose metadata names a former location

    UserWarning
    ├── PropertyWithoutEffectWarning    a table property of Iceberg that has no effect here
    └── ForeignWriterWarning            a job after which a writer of another program cannot continue

A message says what happened, to what, and what to do next. Errors have the subject as an attribute too, so that
programs need not parse the text.
"""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa


class TableFormatError(Exception):
    """Base of all errors of this library."""

    retryable: bool = False
    """Whether the same call may succeed if it is repeated unchanged."""

    def __reduce__(self) -> tuple[object, ...]:
        """Errors are restored from other processes unchanged, even if their constructors take other arguments."""
        return _rebuilt, (type(self), self.args, self.__dict__)

    def _render_traceback_(self) -> list[str]:
        """IPython displays the caller's lines and the message. `traceback.print_exception(error)` prints everything."""
        return _callers_lines(self)


class InvalidArgumentError(TableFormatError, ValueError):
    """The arguments of the call are invalid. Nothing was changed."""


class UnknownColumnError(InvalidArgumentError):
    """A name that is not a column of the table."""

    def __init__(self, name: str, available: Iterable[str], *, where: str) -> None:
        self.name = name
        self.available = tuple(available)
        super().__init__(f"unknown column {name!r} in {where}.{nearest_hint(name, self.available)}")


class UnknownOptionError(InvalidArgumentError):
    """An option that does not exist. Ignoring it would hide a typing mistake."""

    def __init__(self, name: str, available: Iterable[str], *, where: str) -> None:
        self.name = name
        self.available = tuple(available)
        super().__init__(f"unknown option {name!r} of {where}.{nearest_option_hint(name, self.available)}")


class InvalidPredicateError(InvalidArgumentError):
    """A filter that cannot be applied to this table."""


class InvalidKeyError(InvalidArgumentError):
    """A key, key prefix or span bound that does not fit the table's key."""


class SchemaMismatchError(InvalidArgumentError):
    """Rows whose columns or types do not fit the table."""


class NotFoundError(TableFormatError, LookupError):
    """A named object does not exist."""


class CatalogNotFoundError(NotFoundError):
    """Neither a configured catalog nor a path."""


class NamespaceNotFoundError(NotFoundError):
    """A namespace that the catalog does not have."""


class TableNotFoundError(NotFoundError):
    """A table that the catalog does not have, or a metadata file that does not exist."""


class ViewNotFoundError(NotFoundError):
    """A view that the catalog does not have."""


class SnapshotNotFoundError(NotFoundError):
    """A snapshot id, time, tag or branch that the table does not have."""


class ConsumerNotFoundError(NotFoundError):
    """A consumer of the change feed that the table does not have."""

    def __init__(self, name: str, available: Iterable[str]) -> None:
        self.name = name
        self.available = tuple(available)
        super().__init__(
            f"the table has no consumer {name!r}.{nearest_hint(name, self.available)} To register it, call "
            f"consumers.advance({name!r}, snapshot_id) with the snapshot whose rows it already has."
        )


class RowNotFoundError(NotFoundError):
    """A change event deletes a row that the table does not have; nothing was committed."""


class AlreadyExistsError(TableFormatError):
    """A namespace, table, view, tag or branch with this name exists."""


class RowsRefusedError(TableFormatError, ValueError):
    """Some rows do not fit the schema; nothing was committed."""

    def __init__(self, message: str, refused: pa.Table, refused_count: int | None = None) -> None:
        super().__init__(message)
        self.refused = refused
        """The first refused rows; columns `row_index` int64 (0-based in the input), `column` string, `reason`
        string."""
        self.refused_count = len(refused) if refused_count is None else refused_count
        """The number of all refused rows."""


class UncoveredRowsError(RowsRefusedError):
    """Some rows are outside of all range partitions. Nothing was committed.

    `refused` also has the column `row`, a struct of the row's values. It is empty if files of another process were
    refused; the message then names the files.
    """


class DuplicateKeyError(TableFormatError, ValueError):
    """A key occurs twice, but has to be unique. Nothing was committed."""


class StaleRowsError(TableFormatError, ValueError):
    """Rows or events are older than those that the table has, or deleted, for their keys. Nothing was committed."""


class AlreadyCommittedError(TableFormatError):
    """Staged files that were committed to the branch before. Nothing was changed. The files belong to the table."""

    def __init__(self, message: str, *, file_paths: Iterable[str], snapshot_id: int | None) -> None:
        super().__init__(message)
        self.file_paths = tuple(file_paths)
        """The files that the branch has or had."""
        self.snapshot_id = snapshot_id
        """The oldest known snapshot with one of the files; None if it has expired."""


class BatchPartlyAppliedError(TableFormatError):
    """Some tables of a transaction have its batch, and others do not; nothing was changed."""

    def __init__(
        self, application_id: str, batch_id: int | str, *, having: Iterable[str], lacking: Iterable[str]
    ) -> None:
        self.having = tuple(having)
        """The tables that have the batch."""
        self.lacking = tuple(lacking)
        super().__init__(
            f"batch {batch_id!r} of {application_id!r} was committed to {', '.join(self.having) or 'no table'} but "
            f"not to {', '.join(self.lacking)}. Nothing was changed. A transaction commits a batch to all of its "
            "tables. Either a table was recreated or rolled back, or the batch was committed to only one table. "
            "Check the rows of these tables. To commit the batch again, undo it with rollback(..., replay=True) in "
            "the tables that have it, or use another application_id."
        )

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


class CommitConflictError(TableFormatError):
    """Another commit changed what this one relied on. Nothing was changed, and the files of this attempt were
    removed."""

    retryable = True


class RevertConflictError(TableFormatError):
    """A commit cannot be reverted, because a later commit changed the same rows. Nothing was changed."""


class ScopeChangedError(CommitConflictError):
    """Rows came into the scope of the operation after the snapshot that `if_unchanged_since` names; nothing was
    changed. Read the rows again, and repeat the operation with the snapshot that was read."""

    retryable = False


class CommitStateUnknownError(TableFormatError):
    """It is unknown whether the commit happened, because the catalog did not answer. Its files were kept.

    Repeat the call with the same `application_id` and `batch_id`: it commits at most once.
    """


class PartialCommitError(CommitStateUnknownError):
    """A catalog server applied a commit of several tables to some of them only. No file was removed."""

    def __init__(self, *, having: Iterable[str], lacking: Iterable[str]) -> None:
        self.having = tuple(having)
        """The tables that have the commit."""
        self.lacking = tuple(lacking)
        super().__init__(
            f"the catalog applied the commit to {', '.join(self.having)} but not to {', '.join(self.lacking)}: its "
            "transactions are not atomic. No file was removed. Roll back the changed tables, with rollback(..., "
            "replay=True) for a named batch, and repeat the transaction."
        )


class CommitInterruptedError(CommitStateUnknownError, KeyboardInterrupt):
    """Ctrl-C was pressed during the request to the catalog or right after its answer. This is a KeyboardInterrupt too.

    It has a type of its own, so that code that removes staged files after a failure keeps the files of a commit that
    may have happened.
    """


class CommitExitError(CommitStateUnknownError, SystemExit):
    """The process was asked to exit during the request to the catalog or right after its answer, by a signal handler
    for example. This is a SystemExit too, with its `code`, so that the process exits unless the error is caught."""

    def __init__(self, message: str, code: object) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[assignment] # whatever sys.exit was given

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.code)

    @property
    def status(self) -> int:
        """The exit status of a process that ends with this code."""
        if self.code is None:
            return 0
        return self.code if isinstance(self.code, int) else 1


def unknown_outcome(error: BaseException, told: str) -> CommitStateUnknownError:
    """CP-13, CP-51: the error for an interrupt, or for an answer of the catalog other than "applied" and "refused"."""
    if isinstance(error, KeyboardInterrupt):
        return CommitInterruptedError(told)
    return CommitExitError(told, error.code) if isinstance(error, SystemExit) else CommitStateUnknownError(told)


class PublishRefusedError(TableFormatError):
    """The target of a publish has changes that cannot be carried to the branch; nothing was moved."""


class OperationCancelledError(TableFormatError):
    """The caller of an operation stopped waiting, for example an interrupted Spark statement."""


class TaskFailedError(TableFormatError):
    """A task of a job failed on Spark after all its retries. Uncommitted work of the job was discarded."""

    retryable = True


class StorageError(TableFormatError, OSError):
    """Storage, or a catalog service, did not answer, refused the request, or does not exist.

    This is an OSError too.
    """

    retryable = True
    nothing_changed: bool = False
    """Whether it is known that the call had no effect, a commit included."""

    def __init__(self, *args: object, nothing_changed: bool = False) -> None:
        super().__init__(*args)
        if nothing_changed:
            self.nothing_changed = True


class ReadOnlyLakeError(StorageError):
    """A change of a lake whose SQLite file or directory cannot be written."""

    retryable = False

    def __init__(self, catalog_file: str) -> None:
        self.catalog_file = catalog_file
        super().__init__(
            f"{catalog_file} is not writable: the lake is mounted read-only, or write permission on its directory is "
            "missing. Nothing was changed. Reading still works.",
            nothing_changed=True,
        )


class CorruptFileError(TableFormatError):
    """A file whose content is not valid."""

    def __init__(self, location: str, reason: str) -> None:
        self.location = location
        super().__init__(f"{location}: {reason}")


class UnsupportedFeatureError(TableFormatError):
    """A valid table that this version cannot read or write."""


class SeveralTablesError(UnsupportedFeatureError):
    """A transaction over several tables in a catalog that commits one table at a time."""

    def __init__(self, catalog: str, *, kind: str, reason: str) -> None:
        self.catalog = catalog
        super().__init__(
            f"catalog {catalog!r} ({kind}) cannot commit to several tables at once: {reason}. Nothing was changed. "
            "Use one transaction for each table, with the same application_id and batch_id. Or use the catalog of a "
            "lake, or a REST catalog whose server supports transactions."
        )


class CopiedLakeError(UnsupportedFeatureError):
    """A table in another lake than the catalog: the lake was copied. It can be read but not written."""

    def __init__(self, name: str, *, location: str, catalog_file: str, lake: str) -> None:
        self.location = location
        self.lake = lake
        super().__init__(
            f"{name} cannot be changed through {catalog_file}: its files are at {location}, in the lake {lake}, "
            "which has its own catalog. Either the catalog was copied, or it lists a table of another lake. A write "
            "would change the original, and cleanup of the original would remove the new files. Nothing was changed. "
            f"Write through {lake!r}, or run `tableformat relocate` here to turn the copy into an independent lake."
        )


class MovedLakeError(UnsupportedFeatureError):
    """A table of a lake that was moved or copied: its metadata names another location. It can be read but not
    written."""

    def __init__(self, name: str, *, location: str, lake: str) -> None:
        self.location = location
        self.lake = lake
        super().__init__(
            f"{name} cannot be changed: its metadata gives its location as {location}, but the lake is at {lake}. "
            "The lake was moved or copied, and files outside the lake are never written. Nothing was changed. Run "
            "`tableformat relocate`, or call catalog.relocate(), to rewrite the metadata to the current location."
        )


class PropertyWithoutEffectWarning(UserWarning):
    """A table property of Iceberg was set that has no effect here. It is kept for other engines."""


class ForeignWriterWarning(UserWarning):
    """A job was run after which a writer of another program cannot continue."""


def _callers_lines(error: TableFormatError) -> list[str]:
    """The traceback up to the first frame of this library, without the frames of IPython."""
    callers = []
    for frame, line_number in traceback.walk_tb(error.__traceback__):
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package == __name__.partition(".")[0]:
            break
        if package != "IPython":
            callers.append((frame, line_number))
    lines = traceback.StackSummary.extract(callers).format()
    return [*"".join(lines).splitlines(), f"{type(error).__name__}: {error}"]


def _rebuilt(kind: type[TableFormatError], args: tuple[object, ...], attributes: dict[str, object]) -> TableFormatError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


_ELSEWHERE: Final = {
    **dict.fromkeys(("row_filter", "delete_filter", "overwrite_filter", "filter", "filters", "predicate"), "where"),
    **dict.fromkeys(("selected_fields", "select"), "columns"),
    **dict.fromkeys(("updates", "new_values"), "set"),
    **dict.fromkeys(("partition_spec", "partition_cols", "partitioned_by"), "partition_by"),
    **dict.fromkeys(("df", "data", "source"), "rows"),
    "table_name": "name",
    "if_not_exists": "exist_ok",
    "dryrun": "dry_run",
    "timestamp": "as_of",
    "by": "prefix",
}
"""Names of arguments in PyIceberg, delta-rs and others that do not resemble ours."""


def nearest_option_hint(name: str, available: Iterable[str]) -> str:
    """Like `nearest_hint`, for names of arguments. Names of other libraries are known."""
    names = list(available)
    meant = _ELSEWHERE.get(name)
    return f" Did you mean {meant!r}?" if meant in names else nearest_hint(name, names)


def nearest_hint(name: object, available: Iterable[str]) -> str:
    """A sentence that proposes the nearest valid name or lists the valid ones; empty if there are no valid names.

    `name` is given by the caller and need not be text, for example the key of a mapping.
    """
    names, text = list(available), str(name)
    near = difflib.get_close_matches(text, names, n=1, cutoff=0.6) or [
        candidate for candidate in names if candidate.casefold() == text.casefold()
    ]
    if near:
        return f" Did you mean {near[0]!r}?"
    return f" Valid names: {', '.join(names)}." if names else ""
