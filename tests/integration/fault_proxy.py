"""An HTTP proxy on loopback in front of an object store; it injects the faults that a test requests.

error        500 InternalError; the request does not reach the store
slow-down    503 SlowDown; the request does not reach the store
hang         no answer until the client has given up; the request does not reach the store
unanswered   the store executes the request, and the connection is closed without an answer
truncated    the answer ends in the middle
flipped      one bit of the answer's body is flipped; footers of Parquet files are not changed
flipped-upload   one bit of a file is flipped on the way to the store; if the request states a checksum of the file
             and the store `verifies_uploads`, the store rejects it as S3 does (400 BadDigest); otherwise it stores
             the changed file
"""

from __future__ import annotations

import http.client
import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import itemgetter
from urllib.parse import urlparse

import pyarrow.parquet as pq

_PARQUET_MAGIC = b"PAR1"
_HANG_SECONDS = 20.0
_HOP_BY_HOP = frozenset({"connection", "transfer-encoding", "content-length", "keep-alive", "expect"})


class Fault(StrEnum):
    """The fault that is injected into a request."""

    ERROR = "error"
    SLOW_DOWN = "slow-down"
    HANG = "hang"
    UNANSWERED = "unanswered"
    TRUNCATED = "truncated"
    FLIPPED = "flipped"
    FLIPPED_UPLOAD = "flipped-upload"


@dataclass(slots=True)
class FaultProxy:
    """Requests pass unchanged until `arm` selects some of them."""

    store: str
    """The address of the store, such as http://127.0.0.1:5000."""
    requests: list[str] = field(default_factory=list)
    """Method and path of each request since the proxy was armed."""
    delay: float = 0.0
    """Seconds that each answer waits."""
    answered: list[tuple[float, float]] = field(default_factory=list)
    """The times at which each request since arming arrived and was answered, in seconds of `time.perf_counter`."""
    verifies_uploads: bool = True
    """Whether the store compares files with the checksums that requests state."""
    unchecked_uploads: list[str] = field(default_factory=list)
    """Paths of the files that were uploaded without a checksum."""
    _fault: Fault | None = None
    _first: int = 0
    _times: int = 0
    _path: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _released: threading.Event = field(default_factory=threading.Event)
    address: str = ""

    @contextmanager
    def armed(
        self, fault: Fault | None = None, *, first: int = 0, times: int = 1, path: str = ""
    ) -> Iterator[FaultProxy]:
        """Spoil `times` requests from number `first` on, 0-based, of those with `path` in theirs; none without a
        fault."""
        with self._lock:
            self.requests.clear()
            self.answered.clear()
            self._fault, self._first, self._times, self._path = fault, first, times, path
            self._released.clear()
        try:
            yield self
        finally:
            with self._lock:
                self._fault = None
            self._released.set()

    def take(self, request: str) -> Fault | None:
        """The fault for the request that has arrived, if any."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
            is_spoilt = self._first <= number < self._first + self._times and self._path in request
            return self._fault if is_spoilt else None

    def round_trips(self) -> int:
        """The number of successive round trips: the longest chain of requests, each sent after the answer to the one
        before."""
        count, last = 0, float("-inf")
        for came, answered in sorted(self.answered, key=itemgetter(1)):
            if came >= last:
                count, last = count + 1, answered
        return count

    def hang(self) -> None:
        """Until the test is over with it."""
        self._released.wait(_HANG_SECONDS)

    @contextmanager
    def running(self) -> Iterator[FaultProxy]:
        """Listen on a free port of loopback."""
        server = _Server(("127.0.0.1", 0), _handler_of(self))
        self.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._released.set()
            server.shutdown()
            server.server_close()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore the error: the client has closed the connection."""


def _handler_of(proxy: FaultProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            came = time.perf_counter()
            body = self._body()
            fault = proxy.take(f"{self.command} {self.path}")
            is_upload = self.command == "PUT" and bool(body)
            if is_upload and not self._states_checksum():
                proxy.unchecked_uploads.append(self.path)
            if is_upload and fault is Fault.FLIPPED_UPLOAD:
                if proxy.verifies_uploads and self._states_checksum():
                    return self._answer(400, {}, _error_body("BadDigest"))
                body = self._flipped_upload(body)
            match fault:
                case Fault.ERROR:
                    return self._answer(500, {}, _error_body("InternalError"))
                case Fault.SLOW_DOWN:
                    return self._answer(503, {}, _error_body("SlowDown"))
                case Fault.HANG:
                    proxy.hang()
                    self.close_connection = True
                    return None
            status, headers, content = self._asked(body)
            if fault is Fault.UNANSWERED:
                self.close_connection = True
                return None
            time.sleep(proxy.delay)
            proxy.answered.append((came, time.perf_counter()))
            if fault is Fault.FLIPPED and self.command == "GET":
                content = flipped(content)
            return self._answer(status, headers, content, is_truncated=fault is Fault.TRUNCATED)

        do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 - the names that http.server calls

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing: the test counts requests."""

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return b"".join(parts)

        def _states_checksum(self) -> bool:
            """Whether the request has a checksum in a header, or a header that announces one after the body."""
            names = [name.lower() for name in self.headers]
            stated = [*names, (self.headers.get("x-amz-trailer") or "").lower()]
            return "content-md5" in names or any(
                name.startswith("x-amz-checksum-") and name != "x-amz-checksum-type" for name in stated
            )

        def _flipped_upload(self, body: bytes) -> bytes:
            """In the encoding `aws-chunked`, a line with the length precedes the file, and the checksum follows it."""
            if "aws-chunked" not in (self.headers.get("Content-Encoding") or ""):
                return flipped(body, in_values=True)
            length, _, rest = body.partition(b"\r\n")
            size = int(length.split(b";")[0], 16)
            return length + b"\r\n" + flipped(rest[:size], in_values=True) + rest[size:]

        def _asked(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            """The store's own answer."""
            store = urlparse(proxy.store)
            connection = http.client.HTTPConnection(store.hostname or "", store.port, timeout=30)
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
            connection.request(
                self.command, self.path, body=body, headers={**headers, "Content-Length": str(len(body))}
            )
            answer = connection.getresponse()
            content = answer.read()
            kept = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP}
            if self.command == "HEAD":
                kept["Content-Length"] = answer.getheader("Content-Length", "0")
            connection.close()
            return answer.status, kept, content

        def _answer(self, status: int, headers: dict[str, str], content: bytes, *, is_truncated: bool = False) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if self.command != "HEAD" and status != 204:
                self.send_header("Content-Length", str(len(content)))
            if is_truncated:
                self.close_connection = True
                content = content[: len(content) // 2]
                if not content:
                    return
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

    return Handler


def flipped(content: bytes, *, in_values: bool = False) -> bytes:
    """The bytes with a bit in the middle changed; of a Parquet file a bit of its pages, and none of a footer alone.

    `in_values`: of a whole Parquet file a bit of the values of a page, and not of a page header.
    """
    first, end = 0, len(content)
    if content.endswith(_PARQUET_MAGIC):
        first, end = len(_PARQUET_MAGIC), len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    if end <= first:
        return content
    place = (first + end) // 2
    if in_values and content.endswith(_PARQUET_MAGIC):
        chunk = pq.read_metadata(io.BytesIO(content)).row_group(0).column(0)
        place = (chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size - 1
    return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]


def _error_body(code: str) -> bytes:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>injected</Message></Error>'.encode()
    )
