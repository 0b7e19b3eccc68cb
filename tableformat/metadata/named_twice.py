"""Data files that a snapshot names more than once, which Iceberg does not allow.

Other writers create such snapshots: by retrying a commit that succeeded, or by adding files of another table twice.

    entry a #1     rows 1, 2        a scan gives the rows of each entry
    delete 1 #2
    entry a #3     rows 1, 2        rows 2, 1, 2

A row delete names a path, and so does the removal of a file from the table. Both affect all entries with the path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tableformat.errors import UnsupportedFeatureError
from tableformat.metadata.content_file import DataFile


def paths_named_twice(files: Sequence[DataFile]) -> frozenset[str]:
    """MT-64: the paths that more than one file has."""
    if len({file.file_path for file in files}) == len(files):
        return frozenset()
    return frozenset(path for path, count in Counter(file.file_path for file in files).items() if count > 1)


def named_twice_error(path: str, consequence: str) -> UnsupportedFeatureError:
    """The error if the entries of one path cannot be distinguished."""
    return UnsupportedFeatureError(
        f"data file {path} is in the table more than once, with different deletes, because another writer committed "
        f"it that way, so {consequence}. Nothing was changed. Delete the rows of the file by key (delete_rows, or "
        "delete with a filter of values), and append the rows to keep once."
    )
