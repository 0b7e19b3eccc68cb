"""`python -m report.run --minutes 60 --output docs`: measure, then write the report."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from ducklake import ducklake_python

from report.budget import Budget
from report.figures import Measurements
from report.rendering.page import write_report
from report.systems.process import System, SystemFailedError
from report.workloads import deletes, growth, mixed, planning, spark_statements, verbs, writers
from report.workloads.contest import LIMIT, Setting, TimeIsOverError

_ROOT = Path(__file__).resolve().parents[3]
WORKLOADS: dict[str, tuple[float, Callable[[Setting], None]]] = {
    verbs.WORKLOAD: (4, verbs.run),
    deletes.WORKLOAD: (3, deletes.run),
    planning.WORKLOAD: (2, planning.run),
    writers.WORKLOAD: (1, writers.run),
    spark_statements.WORKLOAD: (4, spark_statements.run),
    mixed.WORKLOAD: (4, mixed.run),
    growth.SCATTERED: (4, growth.run_scattered),
    growth.WORKLOAD: (6, growth.run),
}
"""Each workload with its share of the time. The last one continues until the time is over."""


def systems() -> list[System]:
    """The systems that run on one machine without Spark."""
    found = [
        System("tableformat", "ours", "Ours", sys.executable),
        System("tableformat, upkeep", "ours", "Ours", sys.executable, ("writer",)),
        System("PyIceberg", "py_iceberg", "PyIceberg", sys.executable),
        System("delta-rs", "delta_rs", "DeltaRs", sys.executable),
    ]
    python = ducklake_python()
    if python is not None:
        found.append(System("DuckLake", "duck_lake", "DuckLake", python))
    return [*found, System(LIMIT, "plain_parquet", "PlainParquet", sys.executable)]


def main() -> None:
    arguments = _arguments()
    figures = _ROOT / "build" / "bench-report.json" if arguments.figures is None else arguments.figures
    if arguments.render:
        write_report(Measurements.loaded(figures), arguments.output)
        return
    measurements = Measurements.loaded(figures) if arguments.only and figures.exists() else Measurements()
    measurements.machine |= _machine()
    if ducklake_python() is None:
        measurements.note("verbs", "DuckLake was not there: its environment is missing.")
    chosen = {name: WORKLOADS[name] for name in WORKLOADS if not arguments.only or name in arguments.only}
    budget = Budget(arguments.minutes, {name: share for name, (share, _) in chosen.items()})
    home = Path(tempfile.mkdtemp(prefix="bench-report-", dir=arguments.directory))
    try:
        for name, (_, run) in chosen.items():
            deadline = budget.deadline(name)
            print(f"{name}: {deadline.seconds:.0f} s", flush=True)
            directory = home / name
            directory.mkdir()
            measurements.forget(name)
            load = _load()
            try:
                run(Setting(systems(), directory, deadline, measurements))
            except TimeIsOverError as error:
                measurements.note(name, f"The time was over {error}.")
            except SystemFailedError as error:
                measurements.note(name, f"It ended before its time: {error}.")
            shutil.rmtree(directory)
            minutes = f"{deadline.seconds / 60:.1f} minutes, load of the machine {load} before and {_load()} after"
            measurements.note(name, f"{minutes} (over 1, 5 and 15 minutes).")
            measurements.save(figures)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    write_report(measurements, arguments.output)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--output", type=Path, required=True, help="directory of benchmarks.md and its pictures")
    parser.add_argument("--figures", type=Path, help="what was measured, as JSON: build/bench-report.json")
    parser.add_argument("--directory", type=Path, help="where tables are while they are measured")
    parser.add_argument(
        "--only", action="append", choices=list(WORKLOADS), help="this one; may be repeated; others stay"
    )
    parser.add_argument("--render", action="store_true", help="write the report of the figures that are there")
    return parser.parse_args()


def _machine() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "cores": str(os.cpu_count()),
        "memory": f"{memory / 2**30:.0f} GiB",
        "Python": platform.python_version(),
    }


def _load() -> str:
    return " ".join(f"{each:.1f}" for each in os.getloadavg())


if __name__ == "__main__":
    main()
