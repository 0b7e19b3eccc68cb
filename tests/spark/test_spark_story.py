"""The short form of the story: two streams on the session of the tests, which are stopped and restarted."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from story import Story, counted
from story_stream import SessionStream

from tableformat import Catalog

SECONDS = 6


@pytest.mark.since_spark("4.0", "rows with other columns than the table's")
def test_restarted_streams_keep_the_newest_messages(
    spark: SparkSession, lake: Catalog, namespace: str, tmp_path: Path
) -> None:
    """CP-14, CP-66, CF-6, CF-11: with concurrent jobs and a consumer; `make soak-story` kills drivers for minutes."""
    story = Story(lake, f"{namespace}.t", tmp_path, seed=36)
    name = f"lake.{namespace}.t"
    streams = [
        SessionStream(spark, name, topic.directory, tmp_path / f"checkpoint-{number}")
        for number, topic in enumerate(story.topics)
    ]
    story.run(streams, SECONDS, seconds_between=(1, 3))
    by_spark = spark.table(name).toArrow()
    assert counted(by_spark) == story.last_rows()
