"""Rewrites locations in table metadata files. Unknown fields do not change."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from typing import Any, Final

from tableformat.errors import CorruptFileError
from tableformat.maintenance.conversion.conversion_record import CONVERTED_DELETES_UNTIL, CONVERTED_FILES_UNTIL
from tableformat.metadata.owned_files import PATH_PROPERTIES
from tableformat.relocation.naming import Naming
from tableformat.storage.inflating import Inflater

Document = dict[str, Any]

_GZIP_MAGIC: Final = b"\x1f\x8b"
_COMPARE_PATHS: Final = (CONVERTED_DELETES_UNTIL, CONVERTED_FILES_UNTIL)
"""Summary properties that depend on the order of paths, which may change. A conversion without them repeats work."""
_STATISTICS: Final = ("statistics", "partition-statistics")


def parse_document(data: bytes, location: str, bytes_max: int) -> Document:
    """Raises CorruptFileError for bytes that are not table metadata, or exceed `bytes_max` (FM-32)."""
    try:
        document = json.loads(Inflater(location, bytes_max).gunzipped(data))
        if "location" in document:
            return dict(document)
    except (ValueError, EOFError, OSError, TypeError, zlib.error) as error:
        raise CorruptFileError(location, f"it is not a table metadata file ({error}).") from error
    raise CorruptFileError(location, "it is not a table metadata file: it has no location.")


def encode_document(document: Document, location: str) -> bytes:
    """Compressed if the name says so."""
    data = json.dumps(document, separators=(",", ":")).encode()
    return gzip.compress(data) if ".gz" in location.rpartition("/")[2] else data


def manifest_lists(document: Document) -> list[str]:
    """The manifest lists of all snapshots."""
    return [each["manifest-list"] for each in document.get("snapshots") or () if "manifest-list" in each]


def statistics_files(document: Document) -> Iterator[str]:
    """The statistics files of the table and its partitions."""
    for kind in _STATISTICS:
        for each in document.get(kind) or ():
            yield each["statistics-path"]


def logged_files(document: Document) -> list[str]:
    """The earlier metadata files in the log."""
    return [each["metadata-file"] for each in document.get("metadata-log") or ()]


def renamed_document(document: Document, naming: Naming) -> Document:
    """LK-6: the table metadata at its new location. A property with a directory outside of the moved location is left
    out, because new files would be written there."""
    changed = {**document, "location": naming.table_target}
    if "snapshots" in document:
        changed["snapshots"] = [_renamed_snapshot(each, naming) for each in document["snapshots"]]
    if "metadata-log" in document:
        changed["metadata-log"] = [
            {**each, "metadata-file": naming.metadata_file(each["metadata-file"])} for each in document["metadata-log"]
        ]
    for kind in _STATISTICS:
        if kind in document:
            changed[kind] = [
                {**each, "statistics-path": naming.kept(each["statistics-path"], "metadata")} for each in document[kind]
            ]
    properties = dict(document.get("properties") or {})
    for name in PATH_PROPERTIES:
        if name in properties:
            directory = naming.directory(properties.pop(name))
            properties |= {} if directory is None else {name: directory}
    return {**changed, "properties": properties}


def _renamed_snapshot(snapshot: Document, naming: Naming) -> Document:
    changed = dict(snapshot)
    if "manifest-list" in snapshot:
        changed["manifest-list"] = naming.rewritten(snapshot["manifest-list"])
    if snapshot.get("summary") is not None:
        changed["summary"] = {name: text for name, text in snapshot["summary"].items() if name not in _COMPARE_PATHS}
    return changed
