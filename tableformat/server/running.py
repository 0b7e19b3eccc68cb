"""Runs the application in this process: in the foreground for the command line, in a thread for tests and notebooks."""

from __future__ import annotations

import signal
import time
from threading import Thread
from typing import Any

import uvicorn

from tableformat.catalogs.catalog import Catalog
from tableformat.errors import StorageError
from tableformat.server.application import application
from tableformat.server.context import ServerContext
from tableformat.server.options import ServeOptions

_START_SECONDS = 30.0
_KEEP_ALIVE_SECONDS = 30
_BACKLOG = 2_048
_POLL_SECONDS = 0.5


class Server:
    """A running server. A context manager that stops it."""

    def __init__(self, catalog: Catalog, options: ServeOptions, host: str, port: int, **uvicorn_options: Any) -> None:
        config = uvicorn.Config(
            application(ServerContext.of(catalog, options, host)),
            host=host,
            port=port,
            log_level="warning",
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            backlog=_BACKLOG,
            lifespan="off",
            access_log=False,
            server_header=False,
            **uvicorn_options,
        )
        self._host = host
        self._is_tls = config.is_ssl
        self._server = uvicorn.Server(config)
        self._thread: Thread | None = None

    @property
    def url(self) -> str:
        """The address for clients, such as `http://127.0.0.1:8181`."""
        port = self._server.servers[0].sockets[0].getsockname()[1] if self._server.started else 0
        return f"{'https' if self._is_tls else 'http'}://{self._host}:{port or self._server.config.port}"

    def start(self) -> Server:
        """Serve in a thread. Raises StorageError if the address cannot be used."""
        self._thread = Thread(target=self._server.run, name="tableformat-serve", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                self._server.should_exit = True
                raise StorageError(
                    f"the server cannot listen on {self._host}:{self._server.config.port}. Choose another port; port 0 "
                    "takes a free one."
                )
            time.sleep(0.01)
        return self

    def wait(self) -> None:
        """Return when the process gets SIGINT or SIGTERM, or the server has ended. For the main thread only."""
        assert self._thread is not None, "the server was started"
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: setattr(self._server, "should_exit", True))
        while self._thread.is_alive():
            self._thread.join(_POLL_SECONDS)

    def stop(self) -> None:
        """Finish the running requests and stop."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> Server:
        return self if self._thread is not None else self.start()

    def __exit__(self, *_exception: object) -> None:
        self.stop()


def serve(
    catalog: Catalog,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    read_only: bool = False,
    token: str | None = None,
    freshness_seconds: float = 1.0,
    allow_jobs: bool = False,
) -> Server:
    """Serve a catalog as an Iceberg REST catalog in a thread of this process, on a free port by default.

    Other Iceberg engines then read every table of the catalog, also while equality or range deletes are pending. A
    browser displays the tables at the server's address. The server is a context manager that stops itself. See
    `ServeOptions` for the other arguments. The command line has `tableformat serve`.

    >>> from pyiceberg.catalog import load_catalog
    >>> result = table.delete_prefix({"id1": "A"})
    >>> with tf.serve(catalog) as server:
    ...     rest = load_catalog("rest", type="rest", uri=server.url)
    ...     rest.load_table("db.calendars").scan().to_arrow()["id1"].to_pylist()
    ['B']
    """
    options = ServeOptions(read_only=read_only, token=token, freshness_seconds=freshness_seconds, allow_jobs=allow_jobs)
    return Server(catalog, options, host, port).start()
