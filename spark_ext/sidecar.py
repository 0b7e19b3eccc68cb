"""The Python process behind a Spark catalog: `python -m spark_ext.sidecar`, started by the catalog's Java part.

Requests are read from standard input and answers written to standard output. A frame starts with the length of its
header, as a 32-bit big-endian integer, and the header as JSON. Its parts follow as raw bytes, with the lengths in the
header's `parts`.

    request   {"id": 7, "method": "load_table", "arguments": {...}, "parts": []}
    answer    {"id": 7, "result": ..., "parts": [123]}
    failure   {"id": 7, "error": {"type": ..., "condition": ..., "sql_state": ..., "message": ...}}

In the other direction there is one call: a task for an executor. Its answer arrives as a request without an answer.

    call      {"call": 3, "parts": [8000, 412]}                     a function with its context, and a task, pickled
    answer    {"id": 0, "method": "answer_call", "arguments": {"call": 3, "error": null}, "parts": [917]}

A caller that stops waiting sends a cancellation, and the request ends before its next commit (MT-62).

    cancel    {"id": 0, "method": "cancel", "arguments": {"request": 7}, "parts": []}

A pool of threads answers requests, in any order. The process exits when its input ends.
"""

from __future__ import annotations

import itertools
import json
import os
import struct
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO, Final

from spark_ext.service.registry import Answer, Buffer, Request, handler_of
from spark_ext.service.session import Session
from spark_ext.service.wire.errors import describe_error
from tableformat.commit.cancellation import cancelled_when
from tableformat.commit.environment import set_environment

_LENGTH: Final = struct.Struct(">i")
_THREADS: Final = 16
_ANSWER_CALL: Final = "answer_call"
_CANCEL: Final = "cancel"


class Connection:
    """Frames on a pair of streams. Several threads may write concurrently."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink
        self._lock = threading.Lock()
        self._calls: dict[int, Future[bytes]] = {}
        self._last_call = itertools.count(1)

    def receive(self) -> tuple[dict[str, Any], list[bytes]] | None:
        """The next header and its parts; None at the end of the input."""
        length = self._source.read(_LENGTH.size)
        if len(length) < _LENGTH.size:
            return None
        header = json.loads(self._source.read(_LENGTH.unpack(length)[0]))
        return header, [self._source.read(size) for size in header["parts"]]

    def send(self, header: dict[str, Any], parts: Sequence[Buffer] = ()) -> None:
        views = [memoryview(part).cast("B") for part in parts]
        text = json.dumps({**header, "parts": [len(view) for view in views]}).encode()
        with self._lock:
            self._sink.write(_LENGTH.pack(len(text)))
            self._sink.write(text)
            for view in views:
                self._sink.write(view)
            self._sink.flush()

    def run_task(self, shared: bytes, task: bytes) -> Future[bytes]:
        """Run a task on an executor, through the JVM. On failure the future raises a RuntimeError."""
        number, answer = next(self._last_call), Future[bytes]()
        self._calls[number] = answer
        self.send({"call": number}, [shared, task])
        return answer

    def answered(self, arguments: dict[str, Any], parts: Sequence[bytes]) -> None:
        """Handle the JVM's answer to a call."""
        answer = self._calls.pop(arguments["call"])
        if arguments["error"] is not None:
            answer.set_exception(RuntimeError(arguments["error"]))
        else:
            answer.set_result(parts[0])


def serve(connection: Connection) -> None:
    """Answer requests until the input ends. The first one starts the session."""
    opening = connection.receive()
    if opening is None:
        return
    session = _start(connection, opening[0])
    if session is None:
        return
    pool = ThreadPoolExecutor(_THREADS)
    running: dict[int, threading.Event] = {}
    while (frame := connection.receive()) is not None:
        if frame[0]["method"] == _ANSWER_CALL:
            # Handled here, because all threads of the pool may be waiting for an answer.
            connection.answered(frame[0]["arguments"], frame[1])
        elif frame[0]["method"] == _CANCEL:
            cancelled = running.get(frame[0]["arguments"]["request"])
            if cancelled is not None:
                cancelled.set()
        else:
            running[frame[0]["id"]] = threading.Event()
            pool.submit(_answer, connection, session, *frame, running)


def _start(connection: Connection, header: dict[str, Any]) -> Session | None:
    try:
        arguments = header["arguments"]
        set_environment(arguments.get("environment", {}))
        session = Session.open(arguments["name"], arguments["options"], jvm=connection, master=arguments.get("master"))
    except Exception as error:  # noqa: BLE001  every failure is reported to the caller, on the other side of the pipe
        connection.send({"id": header["id"], "error": describe_error(error)})
        return None
    connection.send({"id": header["id"], "result": {"pid": os.getpid()}})
    return session


def _answer(
    connection: Connection,
    session: Session,
    header: dict[str, Any],
    parts: list[bytes],
    running: dict[int, threading.Event],
) -> None:
    try:
        with cancelled_when(running[header["id"]].is_set):
            answer = handler_of(header["method"])(session, Request(header["arguments"], parts))
        result = answer if isinstance(answer, Answer) else Answer(answer)
        connection.send({"id": header["id"], "result": result.result}, result.parts)
    except Exception as error:  # noqa: BLE001  every failure is reported to the caller, on the other side of the pipe
        described = describe_error(error)
        described["message"] = session.staging.in_words_of_users(described["message"])
        connection.send({"id": header["id"], "error": described})
    finally:
        running.pop(header["id"], None)


def main() -> None:
    # Other output to standard output must not corrupt the frames.
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        serve(Connection(os.fdopen(0, "rb"), sink))
    finally:
        # Running threads cannot answer any more, because the JVM has ended.
        os._exit(0)


if __name__ == "__main__":
    main()
