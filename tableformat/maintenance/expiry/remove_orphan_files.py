"""Removes files in a table's directory that no metadata names: leftovers of failed writers and removals (MT-50).

list       first, every file below the location
name       then, every file that the newest metadata names, including concurrent commits
remove     listed files that are unnamed, old, and in a directory in which tables store files
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import pyarrow as pa
from pyiceberg.table import Table as IcebergTable

from tableformat import properties as names
from tableformat.commit.metadata_commit import refresh
from tableformat.errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from tableformat.maintenance.expiry.ages import older_than_ms
from tableformat.maintenance.expiry.expired_files import FileRole, UnneededFile, remove_files, split_foreign
from tableformat.maintenance.expiry.file_prefixes import EqualPrefixes
from tableformat.maintenance.expiry.shared_location import check_no_metadata_of_others, check_no_table_shares
from tableformat.maintenance.running.progress import Progress
from tableformat.markup.results import HtmlResult
from tableformat.metadata.owned_files import PATH_PROPERTIES, OwnedFiles
from tableformat.metadata.reachable_files import reachable_files
from tableformat.storage.listing import ListedFile, list_files
from tableformat.storage.location import is_below, one_spelling
from tableformat.storage.storage import same_places, size_bytes

DEFAULT_AGE_MS: Final = 3 * 24 * 60 * 60 * 1000
"""Files of commits that take longer than this count as orphans."""
_LEAST_AGE_MS: Final = 24 * 60 * 60 * 1000
_OWN_DIRECTORIES: Final = ("data", "metadata")
_KEPT_NAMES: Final = frozenset({"version-hint.text"})
"""Used to find tables without a catalog; not named by any metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveOrphanFilesResult(HtmlResult):
    """The removed files. With `dry_run`: the files that would be removed."""

    orphan_file_locations: tuple[str, ...] = ()
    """In sorted order."""
    deleted_files_count: int = 0
    freed_bytes: int = 0
    undeleted_file_locations: tuple[str, ...] = ()
    """Orphans that the store did not remove."""
    foreign_file_locations: tuple[str, ...] = ()
    """Orphans outside the table's directories that are reached through a link. They stay (MT-53)."""
    recent_files_count: int = 0
    """Unnamed files that may belong to a commit in progress."""
    ignored_entries: tuple[str, ...] = ()
    """Names in the table's directory other than `data` and `metadata`. They do not belong to the table, so no file in
    them was removed."""
    listed_files_count: int = 0
    duration_seconds: float = 0.0
    dry_run: bool = False


def remove_orphan_files(
    iceberg: IcebergTable,
    *,
    older_than: datetime | timedelta | str | int | None = None,
    location: str | None = None,
    dry_run: bool = False,
    allow_recent: bool = False,
    file_list: pa.Table | None = None,
    equal_schemes: Mapping[str, str] | None = None,
    equal_authorities: Mapping[str, str] | None = None,
    prefix_mismatch_mode: str = "error",
    progress: Progress | None = None,
) -> RemoveOrphanFilesResult:
    """Remove files below the table's location that no snapshot, branch, tag or metadata file of the table names.

    `file_list` is an existing listing with the columns `file_path` (text) and `last_modified` (timestamp); files
    outside `location` are ignored. MT-50, MT-51.

    Raises InvalidArgumentError in these cases:

    - the location is shared with other tables (MT-52) or outside the table's location;
    - the time is less than a day ago, without `allow_recent`;
    - metadata names files with another scheme or authority.

    Raises UnsupportedFeatureError if the table forbids the removal of files.
    """
    started = time.perf_counter()
    prefixes = EqualPrefixes.of(equal_schemes, equal_authorities, prefix_mismatch_mode)
    oldest_kept_ms = _moment(older_than, allow_recent=allow_recent)
    uuid = iceberg.metadata.table_uuid
    refresh(iceberg)
    _check_may_remove(iceberg, location)
    check_no_table_shares(iceberg, iceberg.location())
    listed = list(_listed(iceberg, location or iceberg.location(), file_list))
    refresh(iceberg)
    if iceberg.metadata.table_uuid != uuid:
        raise TableNotFoundError(f"table {'.'.join(iceberg.name())} was dropped and created again. Reload it.")
    named = reachable_files(iceberg.metadata, iceberg.metadata_location, iceberg.io)
    unnamed = _not_named_through_links(iceberg, prefixes.unnamed(listed, named), listed, named)
    unknown = check_no_metadata_of_others(iceberg, unnamed)
    own, ignored = _in_own_directories(iceberg, unnamed)
    candidates = [file for file in own if file.location not in unknown and not _is_kept(iceberg, file)]
    orphans = sorted((file for file in candidates if file.modified_ms < oldest_kept_ms), key=lambda file: file.location)
    owned = OwnedFiles.of(iceberg)
    files, foreign = split_foreign(
        owned, [UnneededFile(each.location, FileRole.DATA, _size_bytes(iceberg, each)) for each in orphans]
    )
    left = {file.location for file in remove_files(owned, files, progress)} if not dry_run else set()
    return RemoveOrphanFilesResult(
        orphan_file_locations=tuple(file.location for file in files),
        deleted_files_count=len(files) - len(left),
        freed_bytes=sum(file.size_bytes for file in files if file.location not in left),
        undeleted_file_locations=tuple(sorted(left)),
        foreign_file_locations=foreign,
        recent_files_count=len(candidates) - len(orphans),
        ignored_entries=ignored,
        listed_files_count=len(listed),
        duration_seconds=time.perf_counter() - started,
        dry_run=dry_run,
    )


def _listed(iceberg: IcebergTable, location: str, file_list: pa.Table | None) -> Iterator[ListedFile]:
    if file_list is None:
        return list_files(iceberg.io, location)
    for name, is_type in (("file_path", pa.types.is_string), ("last_modified", pa.types.is_timestamp)):
        if name not in file_list.column_names or not is_type(file_list.schema.field(name).type):
            raise InvalidArgumentError(
                "file_list must have the columns file_path (text) and last_modified (timestamp), but it has "
                f"{', '.join(f'{field.name} {field.type}' for field in file_list.schema) or 'no columns'}."
            )
    written_ms = file_list["last_modified"].cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    files = zip(file_list["file_path"].to_pylist(), written_ms.to_pylist(), strict=True)
    return (
        ListedFile(path, -1, each) for path, each in files if path and each is not None and is_below(path, location)
    )


def _not_named_through_links(
    iceberg: IcebergTable, unnamed: list[ListedFile], listed: list[ListedFile], named: Iterable[str]
) -> list[ListedFile]:
    """MT-50: keeps the unnamed files that are not named through a link. A file that was added through a link to the
    table's directory has one path in the metadata and another one in the listing."""
    if not unnamed:
        return []
    found = {one_spelling(file.location) for file in listed}
    elsewhere = [each for each in named if one_spelling(each) not in found]
    same = same_places(iceberg.io, (file.location for file in unnamed), elsewhere)
    return [file for file in unnamed if file.location not in same]


def _moment(older_than: datetime | timedelta | str | int | None, *, allow_recent: bool) -> int:
    """MT-51: the time after which written files stay, in milliseconds since 1970-01-01 UTC."""
    now_ms = time.time_ns() // 1_000_000
    moment_ms = now_ms - DEFAULT_AGE_MS if older_than is None else older_than_ms(older_than, now_ms)
    if moment_ms > now_ms - _LEAST_AGE_MS and not allow_recent:
        raise InvalidArgumentError(
            "older_than must be at least 24 hours ago, because no metadata references the files of pending commits "
            "yet. If nobody writes to the table, pass allow_recent=True."
        )
    return moment_ms


def _size_bytes(iceberg: IcebergTable, file: ListedFile) -> int:
    """The size of the file. Listings by callers do not include it."""
    return size_bytes(iceberg.io, file.location) or 0 if file.size_bytes < 0 else file.size_bytes


def _check_may_remove(iceberg: IcebergTable, location: str | None) -> None:
    if not names.may_remove_files(iceberg.metadata.properties):
        raise UnsupportedFeatureError(
            f"the table property {names.GC_ENABLED} is false: other tables may use its files, so no file is removed."
        )
    if location is not None and not OwnedFiles.of(iceberg).is_inside(location):
        raise InvalidArgumentError(f"{location} is not inside the table's location {iceberg.location()}.")


def _in_own_directories(iceberg: IcebergTable, files: Iterable[ListedFile]) -> tuple[list[ListedFile], tuple[str, ...]]:
    """MT-50: the files in directories in which tables store files, and the names of all other entries of the table's
    directory."""
    root = f"{one_spelling(iceberg.location()).rstrip('/')}/"
    own = tuple(_own_directories(iceberg, root))
    inside: list[ListedFile] = []
    ignored: set[str] = set()
    for file in files:
        spelled = one_spelling(file.location)
        if spelled.startswith(own):
            inside.append(file)
        else:
            ignored.add(spelled.removeprefix(root).partition("/")[0])
    return inside, tuple(sorted(ignored))


def _own_directories(iceberg: IcebergTable, root: str) -> Iterator[str]:
    for name in _OWN_DIRECTORIES:
        yield f"{root}{name}/"
    for name in PATH_PROPERTIES:
        path = iceberg.metadata.properties.get(name)
        if path is not None:
            directory = f"{one_spelling(path).rstrip('/')}/"
            # If a table stored its data directly in its location, every file there would count as the table's own.
            if directory.startswith(root) and directory != root:
                yield directory


def _is_kept(iceberg: IcebergTable, file: ListedFile) -> bool:
    """Hidden files are working files of other programs. The directory of a partition may begin with an underscore."""
    inside = one_spelling(file.location).removeprefix(f"{one_spelling(iceberg.location()).rstrip('/')}/")
    parts = inside.split("/")
    is_hidden = any(part.startswith((".", "_")) and "=" not in part for part in parts)
    return is_hidden or parts[-1] in _KEPT_NAMES
