"""One task of a job on an executor: `python -m spark_ext.executor_task`, started by the JVM there.

Standard input contains the function with its context, and the task. Both are pickled and preceded by their length as a
32-bit big-endian integer. The pickled answer is written to standard output. The process exits when its input is closed,
which means that the executor was killed.
"""

from __future__ import annotations

import os
import struct
import threading
from typing import BinaryIO, Final

from tableformat.maintenance.running.spark_runner import pickled_answer

_LENGTH: Final = struct.Struct(">i")


def main() -> None:
    # Other output to standard output must not corrupt the answer.
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with os.fdopen(0, "rb") as source, sink:
        function, task = _part(source), _part(source)
        threading.Thread(target=_end_with_input, args=(source.fileno(),), daemon=True).start()
        sink.write(pickled_answer(function, task))


def _end_with_input(descriptor: int) -> None:
    os.read(descriptor, 1)
    os._exit(1)


def _part(source: BinaryIO) -> bytes:
    return source.read(_LENGTH.unpack(source.read(_LENGTH.size))[0])


if __name__ == "__main__":
    main()
