"""One plan in its own process, `plan_once.py DIRECTORY FILTER [pyiceberg]`: seconds and peak memory, as JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from nine_million_rows import loaded
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.expressions.parser import parse


def main() -> None:
    directory, where, *others = sys.argv[1:]
    table = loaded(Path(directory))
    figures = {}
    for name in ("first", "again"):
        started, cpu_started = time.perf_counter(), time.process_time()
        if others:
            count = len(list(table.iceberg.scan(parse(where) if where else AlwaysTrue()).plan_files()))
        else:
            count = len(table.scan(where or None).plan().tasks)
        figures[name] = (time.perf_counter() - started, time.process_time() - cpu_started)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    peak_bytes = int(status["VmHWM"].split()[0]) * 1024
    print(json.dumps({**figures, "files": count, "peak_bytes": peak_bytes}))


if __name__ == "__main__":
    main()
