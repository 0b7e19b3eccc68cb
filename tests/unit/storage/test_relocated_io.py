"""A moved table keeps the locations in its metadata, and its files are opened at their current location."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from tableformat.storage import storage
from tableformat.storage.relocated_io import RelocatedFileIO


@pytest.mark.parametrize(
    ("stated", "location", "actual"),
    [
        ("s3://b/t", "s3://b/t/data/x.parquet", "/moved/t/data/x.parquet"),
        ("s3://b/t/", "s3a://b/t/data/x.parquet", "/moved/t/data/x.parquet"),
        ("s3://b/t", "s3://b/table2/x.parquet", "s3://b/table2/x.parquet"),
        ("data/persistent/t", "data/persistent/t/metadata/m.avro", "/moved/t/metadata/m.avro"),
        ("file:///old/t", "file:/old/t/data/x", "/moved/t/data/x"),
        ("file:/old/t", "/elsewhere/x", "/elsewhere/x"),
    ],
)
def test_only_files_below_the_stated_directory_are_relocated(stated: str, location: str, actual: str) -> None:
    """DA-10 needs the stated location: only opening a file uses the actual one."""
    assert RelocatedFileIO(PyArrowFileIO(), stated, "/moved/t").actual(location) == actual


def test_read_write_and_delete_use_the_actual_location(tmp_path: Path) -> None:
    io = pickle.loads(pickle.dumps(RelocatedFileIO(PyArrowFileIO(), "s3://b/t", str(tmp_path))))
    storage.write_bytes(io, "s3://b/t/data/x", b"content")
    assert (tmp_path / "data" / "x").read_bytes() == b"content"
    with io.new_input("s3://b/t/data/x").open() as stream:
        assert stream.read() == b"content"
    storage.delete_if_present(io, "s3://b/t/data/x")
    assert not io.new_output("s3://b/t/data/x").exists()
