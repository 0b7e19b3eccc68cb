"""The rules of application: which delete file applies to which data file, one predicate for each rule.

The sequence numbers of a delete and a data file are compared only here. Other comparisons of sequence numbers order
snapshots.

Rules DA-1, DA-2, DA-3, DA-7 (`specs/delete-application.md`) and RD-2, RD-3 (`specs/range-deletes.md`).
"""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import NDArray
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.transforms import VoidTransform

from tableformat.metadata.content_file import ContentFile, DataFile, DeleteFile
from tableformat.metadata.partition_identity import partition_of


@overload
def position_delete_is_new_enough(delete_sequence_number: int, data_sequence_number: int) -> bool: ...
@overload
def position_delete_is_new_enough(
    delete_sequence_number: NDArray[np.int64], data_sequence_number: NDArray[np.int64] | int
) -> NDArray[np.bool_]: ...
def position_delete_is_new_enough(
    delete_sequence_number: NDArray[np.int64] | int, data_sequence_number: NDArray[np.int64] | int
) -> NDArray[np.bool_] | bool:
    """DA-1, DA-7: positions name rows that exist, so a delete reaches rows written in its own commit too."""
    return data_sequence_number <= delete_sequence_number


@overload
def equality_delete_is_new_enough(delete_sequence_number: int, data_sequence_number: int) -> bool: ...
@overload
def equality_delete_is_new_enough(
    delete_sequence_number: NDArray[np.int64], data_sequence_number: NDArray[np.int64] | int
) -> NDArray[np.bool_]: ...
def equality_delete_is_new_enough(
    delete_sequence_number: int | NDArray[np.int64], data_sequence_number: NDArray[np.int64] | int
) -> bool | NDArray[np.bool_]:
    """DA-2: an equality delete reaches strictly older data only, so rows written together with it survive.

    The arguments may be one delete or an array of deletes, and one data file or one for each delete.
    """
    return data_sequence_number < delete_sequence_number


@overload
def range_delete_is_new_enough(delete_sequence_number: int, data_sequence_number: int) -> bool: ...
@overload
def range_delete_is_new_enough(
    delete_sequence_number: NDArray[np.int64], data_sequence_number: NDArray[np.int64] | int
) -> NDArray[np.bool_]: ...
def range_delete_is_new_enough(
    delete_sequence_number: NDArray[np.int64] | int, data_sequence_number: NDArray[np.int64] | int
) -> NDArray[np.bool_] | bool:
    """RD-2: a range delete reaches strictly older data only, so rows written together with it survive."""
    return data_sequence_number < delete_sequence_number


def delete_is_of_a_later_commit(
    delete_sequence_number: NDArray[np.int64], data_sequence_number: int
) -> NDArray[np.bool_]:
    """CF-10: which deletes that apply to a data file removed rows that had existed before. A position delete may also
    delete rows of its own commit (DA-1); such rows never existed in a snapshot."""
    return data_sequence_number < delete_sequence_number


@overload
def keyed_delete_is_new_enough(delete_sequence_number: int, data_sequence_number: int) -> bool: ...
@overload
def keyed_delete_is_new_enough(
    delete_sequence_number: NDArray[np.int64], data_sequence_number: int
) -> NDArray[np.bool_]: ...
@overload
def keyed_delete_is_new_enough(
    delete_sequence_number: int | NDArray[np.int64], data_sequence_number: NDArray[np.int64]
) -> NDArray[np.bool_]: ...
def keyed_delete_is_new_enough(
    delete_sequence_number: int | NDArray[np.int64], data_sequence_number: int | NDArray[np.int64]
) -> bool | NDArray[np.bool_]:
    """DA-2, RD-2: the common condition of equality and range deletes. One delete and many data files, many deletes and
    one data file, or many of both, whose numbers are broadcast."""
    return data_sequence_number < delete_sequence_number


def is_unpartitioned(spec: PartitionSpec) -> bool:
    """A spec without fields, or with only void ones: it puts every row into the same partition."""
    return all(isinstance(field.transform, VoidTransform) for field in spec.fields)


def is_global(delete: DeleteFile, delete_spec: PartitionSpec) -> bool:
    """DA-3, RD-3: an equality or range delete written under an unpartitioned spec applies to every partition."""
    assert delete.equality_ids is not None, "only equality and range deletes have a global scope"
    return is_unpartitioned(delete_spec)


def shares_partition(delete: ContentFile, data: DataFile) -> bool:
    """DA-1, DA-3: the same spec and the same values; equal values under another spec are another partition."""
    return partition_of(delete) == partition_of(data)


def committed_sequence_number(file: ContentFile) -> int:
    """The data sequence number of a committed file.

    Asking for the number of a staged file is a mistake of the caller: it has none before the commit assigns it (DA-9).
    """
    assert file.sequence_number is not None, f"{file.file_path} has no sequence number before it is committed"
    return file.sequence_number
