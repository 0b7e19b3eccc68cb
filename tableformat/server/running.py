"""Runs the application in this process: in the foreground for the command line, in a thread for tests and notebooks."""

from __future__ import annotations

import signal
import socket
import time
from threading import Event, Thread
from typing import Any

import uvicorn

from tableformat.catalogs.catalog import Catalog
from tableformat.errors import StorageError
from tableformat.properties import SERVE_DELETE_FORMAT_DEFAULT
from tableformat.server.application import application
from tableformat.server.context import ServerContext
from tableformat.server.options import ServeOptions

_KEEP_ALIVE_SECONDS = 30
_BACKLOG = 2_048
_START_POLL_SECONDS = 0.01
_POLL_SECONDS = 0.5
_CLEAN_UP_SECONDS = 60.0
"""How often staged conversions are cleaned up."""


class Server:
    """A running server. A context manager that stops it."""

    def __init__(self, catalog: Catalog, options: ServeOptions, host: str, port: int, **uvicorn_options: Any) -> None:
        """Bind the address; port 0 takes a free one. Raises StorageError if the address cannot be used."""
        self._socket = _bound(host, port)
        self._context = ServerContext.of(catalog, options, host)
        config = uvicorn.Config(
            application(self._context),
            log_level="warning",
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            lifespan="off",
            access_log=False,
            server_header=False,
            **uvicorn_options,
        )
        scheme = "https" if config.is_ssl else "http"
        name = f"[{host}]" if ":" in host else host
        self.url = f"{scheme}://{name}:{self._socket.getsockname()[1]}"
        """The address for clients, such as `http://127.0.0.1:8181`."""
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._run, name="tableformat-serve", daemon=True)
        self._stopped = Event()
        self._cleaner = Thread(target=self._clean_up, name="tableformat-clean-up", daemon=True)

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])

    def _clean_up(self) -> None:
        while not self._stopped.wait(_CLEAN_UP_SECONDS):
            self._context.tables.clean_up()

    def start(self) -> Server:
        """Serve in a thread. Returns when requests are answered."""
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise StorageError(f"the server at {self.url} did not start; its log has the reason.")
            time.sleep(_START_POLL_SECONDS)
        self._cleaner.start()
        return self

    def wait(self) -> None:
        """Return when the process gets SIGINT or SIGTERM, or the server has ended. For the main thread only."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: setattr(self._server, "should_exit", True))
        while self._thread.is_alive():
            self._thread.join(_POLL_SECONDS)

    def stop(self) -> None:
        """Finish the running requests and stop."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        self._socket.close()
        self._stopped.set()
        if self._cleaner.is_alive():
            self._cleaner.join()

    def __enter__(self) -> Server:
        return self if self._thread.is_alive() else self.start()

    def __exit__(self, *_exception: object) -> None:
        self.stop()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once only on sockets that name the protocol; others wait 40 ms for the client.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise StorageError(
            f"the server cannot listen on {host}:{port}: {error}. Choose another port; port 0 takes a free one."
        ) from error
    return listener


def serve(
    catalog: Catalog,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    read_only: bool = False,
    token: str | None = None,
    freshness_seconds: float = 1.0,
    delete_format: str = SERVE_DELETE_FORMAT_DEFAULT,
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
    options = ServeOptions(
        read_only=read_only,
        token=token,
        freshness_seconds=freshness_seconds,
        delete_format=delete_format,
        allow_jobs=allow_jobs,
    )
    return Server(catalog, options, host, port).start()
