"""Statistics files of other engines, with blob types that PyIceberg does not know."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from new_lakes import new_lake
from pyiceberg.table.statistics import StatisticsFile

import tableformat as tf
from tableformat.metadata.table_file import read_table_metadata
from tableformat.storage.location import local_path

BLOB = {"type": "presto-sum-data-size-bytes-v1", "snapshot-id": 1, "sequence-number": 1, "fields": [1]}


def test_table_with_unknown_statistics_blobs_is_usable(tmp_path: Path) -> None:
    """FM-3: the table could not be loaded, nor dropped."""
    rows = pa.table({"id": [1]})
    with new_lake(tmp_path) as catalog:
        table = catalog.create_table("db.t", rows.schema)
        table.append(rows)
        blob = {**BLOB, "snapshot-id": table.snapshot_id}
        statistics = {
            **{"snapshot-id": table.snapshot_id, "statistics-path": f"{table.location}/metadata/a.stats"},
            **{"file-size-in-bytes": 1, "file-footer-size-in-bytes": 1, "blob-metadata": [blob]},
        }
        with table.iceberg.update_statistics() as update:
            update.set_statistics(StatisticsFile.model_validate(statistics))
    with tf.open_catalog(tmp_path) as catalog:
        table = catalog.load_table("db.t")
        table.append(rows)
        assert table.scan().count() == 2
        written = json.loads(Path(local_path(table.iceberg.metadata_location)).read_text())
        assert written["statistics"][0]["blob-metadata"] == [blob]
        metadata, _, _ = read_table_metadata(table.location, {})
        assert metadata.statistics[0].blob_metadata[0].type == BLOB["type"]
        catalog.drop_table("db.t")
