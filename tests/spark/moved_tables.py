"""Copies of tables whose metadata has absolute paths; the paths in the copy are changed to the copied files."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_POSITION_DELETES: Final = 1


def moved_copy(table: Path, target: Path) -> str:
    """Copy a table and change its paths to the new location; returns the location of its newest metadata file."""
    shutil.copytree(table, target)
    newest = max((target / "metadata").glob("v*.metadata.json"), key=lambda path: int(path.name[1:].split(".")[0]))
    stated = "(file:(//)?)?" + re.escape(re.sub("^file:(//)?", "", json.loads(_metadata(newest))["location"]))
    actual = f"file://{target}"
    for path in (target / "data").rglob("*.parquet"):
        _move_position_deletes(path, stated, actual)
    avro = list((target / "metadata").glob("*.avro"))
    for path in [each for each in avro if not each.name.startswith("snap-")]:
        _rewrite(path, stated, actual)
    for path in [each for each in avro if each.name.startswith("snap-")]:
        _rewrite(path, stated, actual)
    for path in (target / "metadata").glob("*.json"):
        path.write_bytes(_packed(path, re.sub(stated, actual, _metadata(path))))
    return f"file://{newest}"


def _is_gzipped(path: Path) -> bool:
    return path.name.endswith(".gz.metadata.json")


def _metadata(path: Path) -> str:
    return (gzip.decompress(path.read_bytes()) if _is_gzipped(path) else path.read_bytes()).decode()


def _packed(path: Path, text: str) -> bytes:
    return gzip.compress(text.encode()) if _is_gzipped(path) else text.encode()


def _rewrite(path: Path, stated: str, actual: str) -> None:
    with path.open("rb") as source:
        reader = fastavro.reader(source)
        records: list[Any] = list(reader)
        header = {name: text for name, text in reader.metadata.items() if not name.startswith("avro.")}
        schema = json.loads(reader.metadata["avro.schema"])
    moved = [_replaced(record, stated, actual) for record in records]
    for record in moved:
        if "manifest_path" in record:
            record["manifest_length"] = Path(record["manifest_path"].removeprefix("file://")).stat().st_size
        elif record["data_file"]["file_format"] != "PUFFIN":
            file = record["data_file"]
            file["file_size_in_bytes"] = _size(file["file_path"])
            if file.get("content") == _POSITION_DELETES:
                # Bounds of the path, which may be truncated.
                file["lower_bounds"] = file["upper_bounds"] = None
    with path.open("wb") as target:
        fastavro.writer(target, fastavro.parse_schema(schema), moved, metadata=header)


def _size(location: str) -> int:
    return Path(location.removeprefix("file://")).stat().st_size


def _replaced(value: Any, stated: str, actual: str) -> Any:
    if isinstance(value, str):
        return re.sub(stated, actual, value)
    if isinstance(value, bytes):
        return re.sub(stated.encode(), actual.encode(), value)
    if isinstance(value, dict):
        return {name: _replaced(each, stated, actual) for name, each in value.items()}
    return [_replaced(each, stated, actual) for each in value] if isinstance(value, list) else value


def _move_position_deletes(path: Path, stated: str, actual: str) -> None:
    rows = pq.read_table(path)
    if "file_path" in rows.column_names:
        moved = pc.replace_substring_regex(rows["file_path"], stated, actual)
        index = rows.column_names.index("file_path")
        pq.write_table(rows.set_column(index, rows.schema.field(index), pa.chunked_array(moved)), path)
