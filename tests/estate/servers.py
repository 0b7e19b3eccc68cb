"""The catalogs and stores of an estate, each on loopback, started for the tests and stopped at their end."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import pytest

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("TABLEFORMAT_ESTATE", HERE.parents[1] / ".estate"))
"""The directory into which `make test-estate` puts the jars; not part of the repository."""
BUCKET = "lake"


@contextmanager
def moto() -> Iterator[dict[str, str]]:
    """S3 and Glue: yields the FileIO properties for a new bucket with the name `BUCKET`.

    The data of earlier servers of this process is deleted, because all of them share one memory.
    """
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    endpoint = f"http://127.0.0.1:{port}"
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/moto-api/reset", method="POST")).close()
    boto3.client(
        "s3", endpoint_url=endpoint, aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1"
    ).create_bucket(Bucket=BUCKET)
    try:
        yield {
            "s3.endpoint": endpoint,
            "s3.access-key-id": "test",
            "s3.secret-access-key": "test",
            "s3.region": "us-east-1",
        }
    finally:
        server.stop()


def glue_options(files: dict[str, str], *, warehouse: str) -> dict[str, str]:
    """Without how files are opened."""
    return {
        "type": "glue",
        "warehouse": warehouse,
        "glue.endpoint": files["s3.endpoint"],
        "glue.region": "us-east-1",
        "glue.access-key-id": "test",
        "glue.secret-access-key": "test",
    }


def jars(name: str) -> list[Path]:
    """The jars that `make test-estate` downloaded under this name."""
    found = sorted((CACHE / name).glob("*.jar"))
    assert found, f"the jars of {name} are not there: make test-estate fetches them"
    return found


@contextmanager
def rest_server(directory: Path, files: dict[str, str], *, warehouse: str) -> Iterator[dict[str, str]]:
    """Iceberg's REST catalog; yields the properties of a client, which do not contain the location of the files.

    `files` are the properties of an object store; without them the warehouse is on the local disk.
    """
    token = uuid.uuid4().hex
    properties = {"warehouse": warehouse, "uri": f"jdbc:sqlite:{directory}/rest.db", "jdbc.schema-version": "V1"}
    if files:
        properties |= {name: value for name, value in files.items() if name != "s3.region"}
        properties |= {
            "client.region": files["s3.region"],
            "s3.path-style-access": "true",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        }
    arguments = [token, *(f"{name}={value}" for name, value in properties.items())]
    with _java_server("rest-server", HERE / "rest_server" / "RestServer.java", *arguments) as port:
        yield {"type": "rest", "uri": f"http://127.0.0.1:{port}", "token": token}


@contextmanager
def hive_metastore(directory: Path) -> Iterator[dict[str, str]]:
    """A Hive 3 metastore over Derby; yields the properties of a client. Skips if PyIceberg has no client for it."""
    if importlib.util.find_spec("thrift") is None:
        pytest.skip("the client of Hive metastores is not installed: pip install thrift")
    home = directory / "metastore"
    home.mkdir()
    with _java_server("hive-metastore", HERE / "hive_metastore" / "HiveMetastore.java", str(home)) as port:
        yield {"type": "hive", "uri": f"thrift://127.0.0.1:{port}", "warehouse": f"file://{directory}/hive"}


@contextmanager
def _java_server(jars: str, source: Path, *arguments: str) -> Iterator[str]:
    """Run a program that prints its port and ends with its standard input; yields the port."""
    if not (CACHE / jars).is_dir() or shutil.which("java") is None:
        pytest.fail(f"{source.stem} needs Java and its jars: make test-estate fetches them")
    server = subprocess.Popen(
        ["java", "-cp", f"{CACHE / jars}/*", str(source), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "JDK_JAVA_OPTIONS"},
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        port = server.stdout.readline().strip()
        assert port.isdecimal(), f"{source.stem} ended with {server.wait(60)}"
        yield port
    finally:
        server.stdin.close()
        server.wait(timeout=60)
        server.stdout.close()
