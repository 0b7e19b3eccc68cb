"""The long form of the story: each stream has its own driver, which is killed."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from soak_figures import soak_seed
from story import Story
from story_stream import ProcessStream

import tableformat as tf

MINUTES = float(os.environ.get("SOAK_STORY_MINUTES", "0"))
TABLE = "db.lines"


@pytest.mark.skipif(not MINUTES, reason="minutes, not seconds: SOAK_STORY_MINUTES is not set (make soak-story)")
def test_killed_streams_keep_the_newest_messages(needs_java: None, tmp_path: Path) -> None:
    """CP-14, CP-66, CF-6, CF-11, MT-1: rows equal a state of the model at every read, and at the end the last one."""
    seed = int(soak_seed() or random.SystemRandom().randrange(10**9))
    warehouse = tmp_path / "lake"
    with tf.open_catalog(str(warehouse)) as catalog:
        catalog.create_namespace("db")
        story = Story(catalog, TABLE, tmp_path, seed)
        streams = [
            ProcessStream(
                warehouse,
                f"lake.{TABLE}",
                topic.directory,
                tmp_path / f"checkpoint-{number}",
                random.Random(story.draw.random()),
                tmp_path / f"driver-{number}.log",
            )
            for number, topic in enumerate(story.topics)
        ]
        print(f"seed {seed}, {story.layout}")
        story.run(streams, MINUTES * 60, seconds_between=(3, 20))
