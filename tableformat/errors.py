"""The errors of this library, in one tree.

    TableFormatError
    ├── InvalidArgumentError            the call cannot be carried out as written
    │   ├── UnknownColumnError          a column that the schema does not have
    │   ├── UnknownOptionError          an option or property that does not exist
    │   ├── InvalidPredicateError       SQL text that is no filter on this table
    │   ├── InvalidKeyError             a key, prefix or span bound that does not fit the key
    │   └── SchemaMismatchError         rows whose schema cannot be the table's
    ├── NotFoundError
    │   ├── CatalogNotFoundError
    │   ├── NamespaceNotFoundError
    │   ├── TableNotFoundError
    │   ├── ViewNotFoundError
    │   ├── SnapshotNotFoundError       a snapshot, tag or branch
    │   └── ConsumerNotFoundError       a consumer of the change feed
    ├── AlreadyExistsError
    ├── RowsRefusedError                rows that do not fit the schema; carries the report
    │   └── UncoveredRowsError          rows that lie where no range partition is
    ├── DuplicateKeyError               `on_duplicate="error"` met a key twice
    ├── AlreadyCommittedError           staged files that the branch has, or had; they are not committed again
    ├── CommitConflictError             another commit made this one wrong; nothing was changed
    ├── RevertConflictError             a later commit changed the rows of a commit that is to be reverted
    ├── CommitStateUnknownError         the catalog did not say whether the commit happened; no file was removed
    │   ├── CommitInterruptedError      a KeyboardInterrupt while the catalog had the request
    │   └── CommitExitError             a SystemExit while it had the request, of the handler of a signal for example
    ├── PublishRefusedError             the target of a publish has changes that cannot be carried to the branch
    ├── OperationCancelledError         the caller of an operation no longer waited; it committed no more
    ├── TaskFailedError                 a task of a job failed where it ran, as often as it was tried
    ├── StorageError                    files or the catalog could not be reached; says nothing about what they hold
    │   └── ReadOnlyLakeError           a lake that cannot be written to, through a commit or a catalog's own change
    ├── CorruptFileError                a file that cannot be read as what it claims to be
    └── UnsupportedFeatureError         a valid table that this version cannot read or write
        ├── CopiedLakeError             a table of another lake, which this catalog can read and must not write
        └── MovedLakeError              a table whose metadata names a place that its lake has left

    UserWarning
    ├── PropertyWithoutEffectWarning    a table property that Iceberg defines and nothing here goes by
    └── ForeignWriterWarning            what was asked for stops a writer of another program

The wording lives in the callers' `raise`, one sentence for what happened to what, one for what to do next; the
subject is also an attribute so that programs need not parse the text.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa


class TableFormatError(Exception):
    """Base of all errors of this library."""

    retryable: bool = False
    """Whether the same call may succeed when it is made again unchanged."""

    def __reduce__(self) -> tuple[object, ...]:
        """Errors come back from other processes as they were raised, whatever their constructors take."""
        return _rebuilt, (type(self), self.args, self.__dict__)


class InvalidArgumentError(TableFormatError, ValueError):
    """The call cannot be carried out as written; nothing was changed."""


class UnknownColumnError(InvalidArgumentError):
    """A name that is not a column of the table."""

    def __init__(self, name: str, available: Iterable[str], *, where: str) -> None:
        self.name = name
        self.available = tuple(available)
        super().__init__(f"unknown column {name!r} in {where}.{nearest_hint(name, self.available)}")


class UnknownOptionError(InvalidArgumentError):
    """An option that nothing reads; ignoring it would hide a typing mistake."""

    def __init__(self, name: str, available: Iterable[str], *, where: str) -> None:
        self.name = name
        self.available = tuple(available)
        super().__init__(f"unknown option {name!r} of {where}.{nearest_option_hint(name, self.available)}")


class InvalidPredicateError(InvalidArgumentError):
    """SQL text that is not a filter on this table."""


class InvalidKeyError(InvalidArgumentError):
    """A key, key prefix or span bound that does not fit the table's key."""


class SchemaMismatchError(InvalidArgumentError):
    """Rows whose columns or types cannot be the table's."""


class NotFoundError(TableFormatError, LookupError):
    """Something named does not exist."""


class CatalogNotFoundError(NotFoundError):
    """Neither a configured catalog nor a path."""


class NamespaceNotFoundError(NotFoundError):
    """A namespace that the catalog does not have."""


class TableNotFoundError(NotFoundError):
    """A table that the catalog does not have, or metadata that is not there."""


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
            f"the table has no consumer {name!r}.{nearest_hint(name, self.available)} consumers.advance({name!r}, "
            "snapshot_id) registers it at the snapshot whose rows it has."
        )


class AlreadyExistsError(TableFormatError):
    """A namespace, table, view, tag or branch of that name exists."""


class RowsRefusedError(TableFormatError, ValueError):
    """Some rows do not fit the schema; nothing was committed."""

    def __init__(self, message: str, refused: pa.Table, refused_count: int | None = None) -> None:
        super().__init__(message)
        self.refused = refused
        """The first of them; columns `row_index` int64 (0-based in the input), `column` string, `reason` string."""
        self.refused_count = len(refused) if refused_count is None else refused_count
        """Of all of them."""


class UncoveredRowsError(RowsRefusedError):
    """Some rows lie where no range partition is; nothing was committed.

    `refused` has the column `row` too, a struct of the row's values. Where files that another process wrote are
    refused, it is empty, and the message names the files.
    """


class DuplicateKeyError(TableFormatError, ValueError):
    """A key occurs twice although the caller asked for unique keys; nothing was committed."""


class AlreadyCommittedError(TableFormatError):
    """Staged files that were committed to the branch before; nothing was changed. They belong to the table now."""

    def __init__(self, message: str, *, file_paths: Iterable[str], snapshot_id: int | None) -> None:
        super().__init__(message)
        self.file_paths = tuple(file_paths)
        """The files that the branch has, or had."""
        self.snapshot_id = snapshot_id
        """The oldest snapshot known to name one of them; None where they are gone, and its history with them."""


class CommitConflictError(TableFormatError):
    """Another commit made this one wrong; nothing was changed and the files of this attempt were removed."""

    retryable = True


class RevertConflictError(TableFormatError):
    """A commit cannot be reverted, because a later commit changed the same rows; nothing was changed."""


class CommitStateUnknownError(TableFormatError):
    """The catalog did not say whether the commit happened; its files were kept.

    Repeat the call with the same `application_id` and `batch_id`: it commits at most once.
    """


class CommitInterruptedError(CommitStateUnknownError, KeyboardInterrupt):
    """Ctrl-C came while the catalog had the request, or had just answered; still a KeyboardInterrupt to whoever handles
    those.

    A type of its own, so that code which removes staged files after a failure leaves those of a commit that may have
    happened.
    """


class CommitExitError(CommitStateUnknownError, SystemExit):
    """The process was told to exit while the catalog had the request, or had just answered: by the handler of a signal
    for example. Still a SystemExit, with its `code`, so that a process which nobody keeps from it does exit."""

    def __init__(self, message: str, code: object) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[assignment] # whatever sys.exit was given

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.code)

    @property
    def status(self) -> int:
        """The exit status of a process that ends with the code."""
        if self.code is None:
            return 0
        return self.code if isinstance(self.code, int) else 1


def unknown_outcome(error: BaseException, told: str) -> CommitStateUnknownError:
    """CP-13, CP-51: what an interrupt, or another answer of the catalog than "applied" and "refused", becomes."""
    if isinstance(error, KeyboardInterrupt):
        return CommitInterruptedError(told)
    return CommitExitError(told, error.code) if isinstance(error, SystemExit) else CommitStateUnknownError(told)


class PublishRefusedError(TableFormatError):
    """The target of a publish has changes that cannot be carried to the branch; nothing was moved."""


class OperationCancelledError(TableFormatError):
    """The caller of an operation no longer waited for it, such as a Spark statement that was interrupted."""


class TaskFailedError(TableFormatError):
    """A task of a job failed on Spark as often as Spark tried it; what the job had not committed was given up."""

    retryable = True


class StorageError(TableFormatError, OSError):
    """Storage, or a catalog service, did not answer, refused, or is not there; nothing is said about what it holds.

    Still an OSError, for whoever handles those.
    """

    retryable = True
    nothing_changed: bool = False
    """Whether it is known that the call did nothing, a commit included."""

    def __init__(self, *args: object, nothing_changed: bool = False) -> None:
        super().__init__(*args)
        if nothing_changed:
            self.nothing_changed = True


class ReadOnlyLakeError(StorageError):
    """A change of a lake whose SQLite file, or directory, cannot be written to here."""

    retryable = False

    def __init__(self, catalog_file: str) -> None:
        self.catalog_file = catalog_file
        super().__init__(
            f"{catalog_file} cannot be written to here: the lake is mounted read-only, or the rights to its directory "
            "are missing. It can be read. Nothing was changed.",
            nothing_changed=True,
        )


class CorruptFileError(TableFormatError):
    """A file that cannot be read as what it claims to be."""

    def __init__(self, location: str, reason: str) -> None:
        self.location = location
        super().__init__(f"{location}: {reason}")


class UnsupportedFeatureError(TableFormatError):
    """A valid table that this version cannot read or write."""


class CopiedLakeError(UnsupportedFeatureError):
    """A table that lies in another lake than the catalog: the lake was copied. It can be read, not written."""

    def __init__(self, name: str, *, location: str, catalog_file: str, lake: str) -> None:
        self.location = location
        self.lake = lake
        super().__init__(
            f"{name} cannot be changed through {catalog_file}: its files are at {location}, in the lake {lake}, which "
            "has a catalog of its own. The catalog was copied, or names a table of another lake; writing would change "
            "the original, whose clean-up would remove what was written. Nothing was changed. Write through "
            f"{lake!r}, or run `tableformat relocate` here, which makes a copied lake one of its own."
        )


class MovedLakeError(UnsupportedFeatureError):
    """A table of a lake that was moved or copied: its metadata names another place. It can be read, not written."""

    def __init__(self, name: str, *, location: str, lake: str) -> None:
        self.location = location
        self.lake = lake
        super().__init__(
            f"{name} cannot be changed: its metadata says that it is at {location}, and the lake is at {lake}. The "
            "lake was moved or copied, and nothing outside of it is written to. Nothing was changed. `tableformat "
            "relocate`, or catalog.relocate(), rewrites the metadata to where the lake is."
        )


class PropertyWithoutEffectWarning(UserWarning):
    """A table property was set that Iceberg defines and nothing here goes by; it is kept for other engines."""


class ForeignWriterWarning(UserWarning):
    """A job was carried out after which a writer of another program cannot go on."""


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
"""What arguments are called in PyIceberg, delta-rs and others: nothing that is near by its letters."""


def nearest_option_hint(name: str, available: Iterable[str]) -> str:
    """As `nearest_hint`, of the names of arguments: those of other libraries are known."""
    names = list(available)
    meant = _ELSEWHERE.get(name)
    return f" Did you mean {meant!r}?" if meant in names else nearest_hint(name, names)


def nearest_hint(name: object, available: Iterable[str]) -> str:
    """The sentence that proposes the nearest valid name, or lists the valid ones; empty when there are none.

    `name`: as the caller gave it, who may have given what is no text as the key of a mapping.
    """
    names, text = list(available), str(name)
    near = difflib.get_close_matches(text, names, n=1, cutoff=0.6) or [
        candidate for candidate in names if candidate.casefold() == text.casefold()
    ]
    if near:
        return f" Did you mean {near[0]!r}?"
    return f" Valid names: {', '.join(names)}." if names else ""
