"""The catalogs and stores of an estate, each on loopback, started for the tests and stopped at their end."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import pytest

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("TABLEFORMAT_ESTATE", HERE.parents[1] / ".estate"))
"""Where `make test-estate` puts the jars; not part of the repository."""
BUCKET = "lake"


@contextmanager
def moto() -> Iterator[dict[str, str]]:
    """S3 and Glue; gives the properties of a FileIO for a new bucket of the name `BUCKET`."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    endpoint = f"http://127.0.0.1:{port}"
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


@contextmanager
def rest_server(directory: Path, files: dict[str, str], *, warehouse: str) -> Iterator[dict[str, str]]:
    """Iceberg's REST catalog; gives a client's properties, which say nothing of where the files are."""
    token = uuid.uuid4().hex
    jars = CACHE / "rest-server"
    if not jars.is_dir() or shutil.which("java") is None:
        pytest.fail("the REST server needs Java and its jars: make test-estate fetches them")
    properties = {
        **{name: value for name, value in files.items() if name != "s3.region"},
        "client.region": files["s3.region"],
        "s3.path-style-access": "true",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "warehouse": warehouse,
        "uri": f"jdbc:sqlite:{directory}/rest.db",
        "jdbc.schema-version": "V1",
    }
    command = ["java", "-cp", f"{jars}/*", str(HERE / "rest_server" / "RestServer.java"), token]
    server = subprocess.Popen(
        [*command, *(f"{name}={value}" for name, value in properties.items())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if name != "JDK_JAVA_OPTIONS"},
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        port = server.stdout.readline().strip()
        assert port.isdecimal(), f"the REST server ended with {server.wait(60)}"
        yield {"type": "rest", "uri": f"http://127.0.0.1:{port}", "token": token}
    finally:
        server.stdin.close()
        server.wait(timeout=60)
        server.stdout.close()
