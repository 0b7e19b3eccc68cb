"""Which delete files apply to which data files: sequence numbers, scope, paths and bounds."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import IdentityTransform, VoidTransform
from pyiceberg.types import DoubleType, IcebergType, LongType, StringType

from tableformat.deletes.codecs.position_rows import FILE_PATH_FIELD_ID
from tableformat.errors import CorruptFileError
from tableformat.merge_on_read.delete_index import (
    ColumnTypes,
    KeyDeleteIndex,
    PositionDeleteIndex,
)
from tableformat.metadata.columns.data_columns import columns_of_files
from tableformat.metadata.content_file import DataFile, DeleteFile, FileContent

SPECS = {
    0: PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "p"), spec_id=0),
    1: PartitionSpec(spec_id=1),
    2: PartitionSpec(PartitionField(1, 1000, VoidTransform(), "p"), spec_id=2),
}
TYPES: dict[int, IcebergType] = {1: LongType(), 2: StringType(), 3: DoubleType()}


def data(path: str = "data.parquet", number: int = 5, **changes: Any) -> DataFile:
    described: dict[str, Any] = {
        "file_path": path,
        "file_format": "PARQUET",
        "spec_id": 0,
        "partition": (1,),
        "record_count": 10,
        "file_size_bytes": 100,
        "sequence_number": number,
    }
    return DataFile(**(described | changes))


def delete(path: str, number: int, content: FileContent, **changes: Any) -> DeleteFile:
    described: dict[str, Any] = {
        "file_path": path,
        "file_format": "PARQUET",
        "spec_id": 0,
        "partition": (1,),
        "record_count": 1,
        "file_size_bytes": 10,
        "sequence_number": number,
        "content": content,
    }
    return DeleteFile(**(described | changes))


def position(path: str, number: int, **changes: Any) -> DeleteFile:
    return delete(path, number, FileContent.POSITION_DELETES, **changes)


def vector(path: str, number: int, of: str | None, **changes: Any) -> DeleteFile:
    return position(path, number, file_format="PUFFIN", referenced_data_file=of, **changes)


def equality(path: str, number: int, ids: tuple[int, ...] = (1,), **changes: Any) -> DeleteFile:
    return delete(path, number, FileContent.EQUALITY_DELETES, equality_ids=ids, **changes)


def paths(deletes: Any) -> list[str]:
    return sorted(found.file_path for found in deletes)


def bounds(field_id: int, lower: Any, upper: Any, *, nulls: int | None = 0, nans: int | None = None) -> dict[str, Any]:
    """Metrics of one column of ten rows."""
    field_type = TYPES[field_id]
    return {
        "value_counts": {field_id: 10},
        "null_value_counts": None if nulls is None else {field_id: nulls},
        "nan_value_counts": None if nans is None else {field_id: nans},
        "lower_bounds": None if lower is None else {field_id: to_bytes(field_type, lower)},
        "upper_bounds": None if upper is None else {field_id: to_bytes(field_type, upper)},
    }


def equality_paths(deletes: list[DeleteFile], file: DataFile) -> list[str]:
    return paths(KeyDeleteIndex(deletes, SPECS, ColumnTypes(TYPES)).deletes_of(file))


def together_paths(deletes: list[DeleteFile], files: list[DataFile]) -> list[list[str]]:
    found = KeyDeleteIndex(deletes, SPECS, ColumnTypes(TYPES)).shared_deletes_of_all(columns_of_files(files), files)
    return [paths(found.get(place, ())) for place in range(len(files))]


class TestPositionDeletes:
    def test_position_deletes_apply_to_their_own_commit_but_not_newer(self) -> None:
        """DA-1: data sequence number at or below the delete's."""
        index = PositionDeleteIndex([position("older", 4), position("same", 5), position("newer", 6)])
        assert paths(index.position_deletes_of(data())) == ["newer", "same"]

    def test_position_deletes_of_another_partition_or_spec_do_not_apply(self) -> None:
        """DA-1: the same spec and the same values; equal values under another spec are another partition."""
        index = PositionDeleteIndex(
            [position("here", 6), position("there", 6, partition=(2,)), position("spec", 6, spec_id=2)]
        )
        assert paths(index.position_deletes_of(data())) == ["here"]

    def test_position_deletes_naming_a_data_file_apply_only_to_it(self) -> None:
        """DA-1: by `referenced_data_file`, or by equal bounds of the path column."""
        path = {FILE_PATH_FIELD_ID: b"data.parquet"}
        index = PositionDeleteIndex(
            [
                position("referenced", 6, referenced_data_file="data.parquet"),
                position("bounded", 6, lower_bounds=path, upper_bounds=path),
                position("other", 6, referenced_data_file="other.parquet"),
            ]
        )
        assert paths(index.position_deletes_of(data())) == ["bounded", "referenced"]
        assert paths(index.position_deletes_of(data("third.parquet"))) == []

    def test_position_deletes_with_excluding_path_bounds_do_not_apply(self) -> None:
        index = PositionDeleteIndex(
            [
                position("around", 6, lower_bounds={FILE_PATH_FIELD_ID: b"a"}, upper_bounds={FILE_PATH_FIELD_ID: b"z"}),
                position("below", 6, lower_bounds={FILE_PATH_FIELD_ID: b"a"}, upper_bounds={FILE_PATH_FIELD_ID: b"b"}),
                position("above", 6, lower_bounds={FILE_PATH_FIELD_ID: b"x"}),
            ]
        )
        assert paths(index.position_deletes_of(data())) == ["around"]
        assert paths(index.position_deletes_of(data("b"))) == ["around", "below"], "a bound is in the file"
        assert paths(index.position_deletes_of(data("x"))) == ["above", "around"]

    @pytest.mark.parametrize(
        "named",
        [
            {"referenced_data_file": "data.parquet"},
            {
                "lower_bounds": {FILE_PATH_FIELD_ID: b"data.parquet"},
                "upper_bounds": {FILE_PATH_FIELD_ID: b"data.parquet"},
            },
        ],
    )
    def test_position_delete_of_file_in_another_partition_is_corrupt(self, named: dict[str, Any]) -> None:
        """DA-1: by equal bounds of the path too, as writers of version 2 name one file."""
        index = PositionDeleteIndex([position("p", 6, partition=(2,), **named)])
        with pytest.raises(CorruptFileError, match=r"p: .*data\.parquet.*another partition"):
            index.position_deletes_of(data())


class TestDeletionVectors:
    def test_vectors_replace_all_position_deletes_of_their_file(self) -> None:
        """DA-7."""
        index = PositionDeleteIndex([position("p", 6), vector("v", 6, "data.parquet")])
        assert index.position_deletes_of(data()) == ()
        assert index.vector_of(data()) == vector("v", 6, "data.parquet")
        assert paths(index.position_deletes_of(data("other.parquet"))) == ["p"]
        assert index.vector_of(data("other.parquet")) is None

    def test_vectors_older_than_the_data_file_do_not_apply(self) -> None:
        """DA-7: data sequence number at or below the vector's."""
        index = PositionDeleteIndex([vector("v", 4, "data.parquet")])
        assert index.vector_of(data()) is None
        assert index.vector_of(data(number=4)) is not None

    def test_two_vectors_for_one_data_file_are_corrupt(self) -> None:
        with pytest.raises(CorruptFileError, match="second deletion vector"):
            PositionDeleteIndex([vector("v1", 6, "data.parquet"), vector("v2", 7, "data.parquet")])

    def test_vector_must_name_its_data_file(self) -> None:
        with pytest.raises(CorruptFileError, match="does not name its data file"):
            PositionDeleteIndex([vector("v", 6, None)])


class TestEqualityDeletes:
    def test_equality_deletes_do_not_apply_to_their_own_commit(self) -> None:
        """DA-2: strictly older data only."""
        assert equality_paths([equality("older", 4), equality("same", 5), equality("newer", 6)], data()) == ["newer"]

    def test_equality_delete_scope_is_the_partition_or_global(self) -> None:
        """DA-3: an all-void spec is unpartitioned too."""
        deletes = [
            equality("here", 6),
            equality("there", 6, partition=(2,)),
            equality("global", 6, spec_id=1, partition=()),
            equality("void", 6, spec_id=2, partition=(None,)),
        ]
        assert equality_paths(deletes, data()) == ["global", "here", "void"]
        assert equality_paths(deletes, data(spec_id=1, partition=())) == ["global", "void"]

    @pytest.mark.parametrize(
        ("lower", "upper", "applies"), [(0, 4, False), (0, 5, True), (9, 12, True), (10, 12, False), (6, 7, True)]
    )
    def test_equality_deletes_outside_the_file_bounds_do_not_apply(self, lower: int, upper: int, applies: bool) -> None:
        found = equality_paths([equality("e", 6, **bounds(1, lower, upper))], data(**bounds(1, 5, 9)))
        assert found == (["e"] if applies else [])

    @pytest.mark.parametrize(
        ("data_nulls", "delete_nulls", "applies"),
        [(0, 1, False), (1, 0, False), (1, 1, True), (None, 1, True), (1, None, True)],
    )
    def test_null_keys_match_nulls_regardless_of_bounds(
        self, data_nulls: int | None, delete_nulls: int | None, applies: bool
    ) -> None:
        """DA-4: an unknown null count excludes nothing."""
        found = equality_paths(
            [equality("e", 6, **bounds(1, 100, 200, nulls=delete_nulls))], data(**bounds(1, 5, 9, nulls=data_nulls))
        )
        assert found == (["e"] if applies else [])

    def test_all_null_delete_columns_match_only_files_with_nulls(self) -> None:
        """DA-4."""
        only_null = equality("e", 6, **bounds(1, None, None, nulls=10))
        assert equality_paths([only_null], data(**bounds(1, 5, 9))) == []
        assert equality_paths([only_null], data(**bounds(1, 5, 9, nulls=1))) == ["e"]

    @pytest.mark.parametrize(
        ("data_nans", "delete_nans", "applies"), [(0, 0, False), (1, 1, True), (None, None, True), (0, None, False)]
    )
    def test_float_bounds_do_not_exclude_nan(
        self, data_nans: int | None, delete_nans: int | None, applies: bool
    ) -> None:
        """DA-5: every NaN equals every NaN, and bounds leave NaN out."""
        found = equality_paths(
            [equality("e", 6, (3,), **bounds(3, 100.0, 200.0, nans=delete_nans))],
            data(**bounds(3, 5.0, 9.0, nans=data_nans)),
        )
        assert found == (["e"] if applies else [])

    def test_files_without_metrics_are_never_excluded(self) -> None:
        assert equality_paths([equality("e", 6, **bounds(1, 0, 1))], data()) == ["e"]
        assert equality_paths([equality("e", 6)], data(**bounds(1, 0, 1))) == ["e"]

    def test_one_disjoint_column_excludes_the_file(self) -> None:
        two = {
            "null_value_counts": {1: 0, 2: 0},
            "lower_bounds": {1: to_bytes(LongType(), 5), 2: b"m"},
            "upper_bounds": {1: to_bytes(LongType(), 9), 2: b"n"},
        }
        near = two | {
            "lower_bounds": {1: to_bytes(LongType(), 7), 2: b"x"},
            "upper_bounds": {1: to_bytes(LongType(), 7), 2: b"z"},
        }
        assert equality_paths([equality("e", 6, (1, 2), **near)], data(**two)) == []
        assert equality_paths([equality("e", 6, (1,), **near)], data(**two)) == ["e"]

    def test_file_without_lower_bound_may_contain_the_smallest_key(self) -> None:
        file = data(**bounds(1, None, 9))
        assert equality_paths(
            [equality("one", 6, **bounds(1, 1, 1)), equality("far", 6, **bounds(1, 50, 60))], file
        ) == ["one"]

    def test_batched_files_get_their_own_deletes(self) -> None:
        """DA-2: by bounds, in the middle of others."""
        files = [data(f"{place}", **bounds(1, 10 * place, 10 * place + 5)) for place in range(4)]
        assert together_paths([equality("e", 6, **bounds(1, 12, 13))], files) == [[], ["e"], [], []]

    def test_few_files_are_matched_with_all_delete_column_lists(self) -> None:
        """DA-2: each file is met by both lists, or by the one that is newer than it."""
        files = [data("old", 5), data("new", 10)]
        deletes = [equality("a", 6), equality("b", 6), equality("c", 11, (2,))]
        assert together_paths(deletes, files) == [["a", "b", "c"], ["c"]]

    def test_batched_files_get_partition_and_global_deletes(self) -> None:
        """DA-2, DA-3: a newer delete of one partition does not affect older files in another."""
        files = [
            data("here"),
            data("there", partition=(2,)),
            data("newer", 9),
            data("unpartitioned", spec_id=1, partition=()),
        ]
        here, there = equality("of-here", 6), equality("of-there", 6, partition=(2,))
        everywhere = equality("everywhere", 7, spec_id=1, partition=())
        assert together_paths([here], files) == [["of-here"], [], [], []]
        assert together_paths([here, there, everywhere], files) == [
            ["everywhere", "of-here"],
            ["everywhere", "of-there"],
            [],
            ["everywhere"],
        ]

    def test_unknown_delete_columns_exclude_nothing(self) -> None:
        assert equality_paths([equality("e", 6, (99,))], data()) == ["e"]

    def test_bounds_written_before_promotion_are_decoded(self) -> None:
        """DA-6: four bytes of an int in a column that is a long now."""
        old = {"lower_bounds": {1: (5).to_bytes(4, "little")}, "upper_bounds": {1: (9).to_bytes(4, "little")}}
        counts = {"null_value_counts": {1: 0}}
        assert equality_paths([equality("e", 6, **bounds(1, 10, 12))], data(**old, **counts)) == []
        assert equality_paths([equality("e", 6, **bounds(1, 9, 12))], data(**old, **counts)) == ["e"]
