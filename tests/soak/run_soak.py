"""The long forms of the tests within a time budget: `SOAK_MINUTES=30 python tests/soak/run_soak.py [PART ...]`.

Each part runs in rounds with new seeds until its share of the time is over. The figures come last;
`notes/reliability.md` keeps them. If a round fails, the command that repeats it is printed, and the exit code is 1.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from soak_figures import FIGURES_FILE, SEED

REPOSITORY: Final = Path(__file__).parents[2]
MINUTES_DEFAULT: Final = "30"
_LINES_OF_FAILURE: Final = 60


@dataclass(frozen=True)
class Part:
    """Tests that share a budget, and how large a round of them is."""

    share: float
    paths: tuple[str, ...]
    examples: int = 100
    """Hypothesis examples in one round."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of a round; `{seconds}` and `{minutes}` are of the part's budget."""


PARTS: Final = {
    "model": Part(0.15, ("tests/property/test_stateful_table.py",), examples=150),
    "evolving": Part(
        0.1,
        (
            "tests/property/test_evolving_tables.py",
            "tests/property/test_followed_feeds.py",
            "tests/property/test_attached_catalogs.py",
            "tests/property/test_published_histories.py",
            "tests/property/test_published_keys.py",
            "tests/property/test_typed_keys.py",
        ),
        examples=300,
    ),
    "long": Part(0.1, ("tests/property/test_long_histories.py",), examples=1_500),
    "metamorphic": Part(0.05, ("tests/property/test_other_settings.py",), examples=100),
    "interleaved": Part(
        0.15, ("tests/property/test_interleaved_jobs.py", "tests/property/test_interleaved_calls.py"), examples=250
    ),
    "crash points": Part(0.15, ("tests/property/test_crash_points.py",), settings={"SOAK_CRASH_POINTS": "1"}),
    "kill": Part(0.05, ("tests/property/test_killed_processes.py",), examples=300),
    "writers": Part(0.15, ("tests/integration/test_many_writers.py",), settings={"SOAK_WRITERS_MINUTES": "{quarter}"}),
    "story": Part(0.05, ("tests/soak/test_story.py",), settings={"SOAK_STORY_MINUTES": "{quarter}"}),
    "served": Part(0.05, ("tests/soak/test_served.py",), settings={"SOAK_SERVED_MINUTES": "{quarter}"}),
    "store faults": Part(
        0.1, ("tests/integration/test_object_store_faults.py",), settings={"SOAK_CASES": "25"}, examples=1_000
    ),
    "hostile bytes": Part(0.05, ("tests/property/test_hostile_bytes.py",), examples=2_000),
    "hostile calls": Part(
        0.1, ("tests/property/test_hostile_calls.py", "tests/property/test_hostile_commands.py"), examples=100
    ),
}


@dataclass
class Outcome:
    """The results of the rounds of a part."""

    rounds: int = 0
    seconds: float = 0.0
    failures: int = 0
    figures: Counter[str] = field(default_factory=Counter)
    seeds: list[int] = field(default_factory=list)

    def line(self, name: str) -> str:
        done = ", ".join(f"{number:,} {what}" for what, number in sorted(self.figures.items())) or "-"
        first, last = (self.seeds[0], self.seeds[-1]) if self.seeds else ("-", "-")
        return f"| {name} | {self.rounds} | {self.seconds:.0f} | {done} | {first} .. {last} | {self.failures} |"


def run_part(name: str, part: Part, budget_seconds: float, first_seed: int, directory: Path) -> Outcome:
    """Rounds until the next one would be too long; one round always."""
    outcome = Outcome()
    started = time.monotonic()
    longest = 0.0
    while not outcome.rounds or (time.monotonic() - started) + longest <= budget_seconds:
        seed = first_seed + outcome.rounds
        round_started = time.monotonic()
        outcome.failures += run_round(name, part, budget_seconds, seed, directory / "figures.jsonl", outcome.figures)
        longest = max(longest, time.monotonic() - round_started)
        outcome.rounds += 1
        outcome.seeds.append(seed)
        outcome.seconds = time.monotonic() - started
        print(outcome.line(name), file=sys.stderr, flush=True)
    return outcome


def run_round(
    name: str, part: Part, budget_seconds: float, seed: int, figures_file: Path, figures: Counter[str]
) -> int:
    """The number of failed tests; what was done is added to `figures`."""
    settings = {
        "HYPOTHESIS_PROFILE": "round",
        "SOAK_EXAMPLES": str(part.examples),
        SEED: str(seed),
        **{key: value.format(quarter=budget_seconds / 60 / 5) for key, value in part.settings.items()},
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:benchmark",
        "-q",
        "--show-capture=no",
        f"--hypothesis-seed={seed}",
    ]
    command += part.paths
    figures_file.unlink(missing_ok=True)
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**os.environ, **settings, FIGURES_FILE: str(figures_file)},
        capture_output=True,
        text=True,
        check=False,
    )
    if figures_file.exists():
        for line in figures_file.read_text().splitlines():
            figures.update(json.loads(line))
    if done.returncode == 0:
        return 0
    print("\n".join(done.stdout.splitlines()[-_LINES_OF_FAILURE:]))
    said = " ".join(f"{key}={value}" for key, value in settings.items())
    print(f"{name} failed; again: {said} {' '.join(command)}\n", flush=True)
    failed = re.search(r"(\d+) failed", done.stdout)
    return int(failed[1]) if failed else 1


def main(names: Sequence[str]) -> int:
    minutes = float(os.environ.get("SOAK_MINUTES", MINUTES_DEFAULT))
    unknown = set(names) - set(PARTS)
    if unknown:
        print(f"unknown parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    parts = {name: part for name, part in PARTS.items() if not names or name in names}
    whole = sum(part.share for part in parts.values())
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(10**9))
    outcomes = {}
    with tempfile.TemporaryDirectory(prefix="soak-") as directory:
        for name, part in parts.items():
            outcomes[name] = run_part(name, part, minutes * 60 * part.share / whole, seed, Path(directory))
    print(f"SOAK_MINUTES={minutes:g} {SEED}={seed} python tests/soak/run_soak.py {' '.join(names)}".rstrip())
    print("| part | rounds | seconds | done | seeds | failures |\n|---|---|---|---|---|---|")
    for name, outcome in outcomes.items():
        print(outcome.line(name))
    return int(any(outcome.failures for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
