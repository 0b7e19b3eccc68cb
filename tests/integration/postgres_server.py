"""A PostgreSQL server for the tests: on loopback, in a temporary directory, stopped at the end."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

DRIVER = "psycopg"
_ENVIRONMENT = {**os.environ, "LC_ALL": "C"}


@contextmanager
def postgres_uri() -> Iterator[str]:
    """The SQLAlchemy URI of an empty database. If PostgreSQL or its driver is not installed, the test is skipped with
    the reason."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: neither initdb and postgres in PATH nor in /usr/lib/postgresql")
    if importlib.util.find_spec(DRIVER) is None:
        pytest.skip(f"the driver {DRIVER} is not installed: pip install 'psycopg[binary]'")
    directory = Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        owner = _owner(directory)
        data = directory / "data"
        initdb = [
            programs / "initdb",
            "--auth=trust",
            "--encoding=UTF8",
            "--username=lake",
            "--no-sync",
            f"--pgdata={data}",
        ]
        subprocess.run(initdb, user=owner, cwd="/", env=_ENVIRONMENT, check=True, capture_output=True)
        port = _free_port()
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", directory],
            user=owner,
            cwd="/",
            env=_ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for(server, port)
            yield f"postgresql+{DRIVER}://lake@127.0.0.1:{port}/postgres"
        finally:
            # "Fast" shutdown: SIGTERM would wait until every client has disconnected.
            server.send_signal(signal.SIGINT)
            server.wait(timeout=60)
    finally:
        shutil.rmtree(directory)


def _programs() -> Path | None:
    """The directory of the newest installation; Debian keeps it out of PATH."""
    found = [Path(path).resolve().parent] if (path := shutil.which("initdb")) else []
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name)[::-1]
    return next((path for path in found if (path / "initdb").exists() and (path / "postgres").exists()), None)


def _owner(directory: Path) -> str | None:
    """The user that owns the directory and runs the server, because PostgreSQL does not run as root."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    name = "postgres" if "postgres" in names else "nobody"
    shutil.chown(directory, name)
    return name


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(server: subprocess.Popen[bytes], port: int) -> None:
    import psycopg

    deadline = time.monotonic() + 60
    while True:
        assert server.poll() is None, f"postgres ended with {server.returncode}"
        try:
            psycopg.connect(f"host=127.0.0.1 port={port} user=lake dbname=postgres").close()
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, "postgres takes no connections"
            time.sleep(0.1)
            continue
        return
