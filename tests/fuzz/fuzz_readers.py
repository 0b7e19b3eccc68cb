"""Coverage-guided fuzzing of the readers: `FUZZ_SECONDS=60 python tests/fuzz/fuzz_readers.py [TARGET ...]`.

Needs atheris, which `make fuzz` installs into an environment of its own. Each target gets the seconds in a process of
its own; one that finds an error other than the library's leaves the bytes in the working directory and the exit code 1.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["tableformat"]):
    from reader_targets import TARGETS

    from tableformat.errors import TableFormatError

ONE = "--one"
_MAX_BYTES = 20_000


def fuzz(name: str) -> None:
    """Never returns: libFuzzer ends the process."""
    target = TARGETS[name]
    with tempfile.TemporaryDirectory(prefix="fuzz-corpus-") as corpus:
        for number, seed in enumerate(target.seeds()):
            Path(corpus, str(number)).write_bytes(seed)

        def test_one(data: bytes) -> None:
            try:
                target.read(data)
            except TableFormatError:
                return

        budget = f"-max_total_time={os.environ.get('FUZZ_SECONDS', '60')}"
        atheris.Setup([sys.argv[0], budget, f"-max_len={_MAX_BYTES}", "-rss_limit_mb=4096", corpus], test_one)
        atheris.Fuzz()


def main(names: Sequence[str]) -> int:
    if names[:1] == [ONE]:
        fuzz(names[1])
    unknown = set(names) - set(TARGETS)
    if unknown:
        print(f"unknown targets: {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    failed = []
    for name in names or TARGETS:
        done = subprocess.run([sys.executable, __file__, ONE, name], capture_output=True, text=True, check=False)
        said = done.stderr.splitlines()
        runs = next((line for line in reversed(said) if line.startswith("Done ")), f"exit code {done.returncode}")
        print(f"{name}: {runs}", flush=True)
        if done.returncode:
            failed.append(name)
            print(done.stdout, "\n".join(said[-40:]), flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
