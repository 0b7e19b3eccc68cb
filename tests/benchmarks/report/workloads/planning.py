"""Plans of 1,000 to 1,000,000 data files, each in its own process: ours and PyIceberg's over the same metadata."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from many_files import FILES_PER_MANIFEST, adopt_missing, entries, partner, table_of_many_files
from nine_million_rows import new_table

from report.workloads.contest import Setting

WORKLOAD = "planning"
COUNTS = (1_000, 10_000, 100_000, 1_000_000)
_ROUNDS = 3
_ALL_FILES_MAX = 100_000
"""More tasks than these are not made: they are objects, in each system."""
_SCRIPT = Path(__file__).resolve().parents[2] / "plan_once.py"


def run(setting: Setting) -> None:
    """By the number of files; a system that took more than its part of the remaining time stops."""
    setting.measurements.sizes[WORKLOAD] = "metadata alone, clustered by key; nothing is cached from plan to plan"
    left_by: set[tuple[str, str]] = set()
    for count in COUNTS:
        lake = setting.directory / str(count)
        if count < FILES_PER_MANIFEST:
            adopt_missing(new_table(lake), list(entries(count)))
        else:
            table_of_many_files(lake, count)
        questions = {"one partner": (f"id1 = '{partner(count // 2)}'", 1)}
        if count <= _ALL_FILES_MAX:
            questions["all files"] = ("", count)
        for _ in range(_ROUNDS):
            for what, (where, found) in questions.items():
                for system in ("tableformat", "PyIceberg"):
                    if (system, what) not in left_by and not _plan(setting, system, what, (lake, where, found), count):
                        left_by.add((system, what))
                        text = f"{system} left at {count:,} files ({what}), when its part of the time was over."
                        setting.measurements.note(WORKLOAD, text)


def _plan(setting: Setting, system: str, what: str, question: tuple[Path, str, int], count: int) -> bool:
    """Whether there was an answer in time."""
    lake, where, found = question
    command = [sys.executable, str(_SCRIPT), str(lake), where, *(["pyiceberg"] if system == "PyIceberg" else [])]
    try:
        done = subprocess.run(
            command, check=True, capture_output=True, env=dict(os.environ), timeout=max(setting.deadline.left / 3, 5)
        )
    except subprocess.TimeoutExpired:
        return False
    figures: dict[str, Any] = json.loads(done.stdout)
    assert figures["files"] == found, f"{system} planned {figures['files']:,} files instead of {found:,}"
    for when, words in (("first", "a process's first plan"), ("again", "the same again")):
        setting.measurements.add(WORKLOAD, f"{what}, {words}", system, tuple(figures[when]), at=count)
    return True
