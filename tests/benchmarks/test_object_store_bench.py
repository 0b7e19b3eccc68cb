"""A table of many small files on an object store with a latency of 30 ms. It is compared with pyarrow reading the same
data files with the same number of threads (issue 9, section 1): requests, successive requests, seconds.

`TABLEFORMAT_STORE_FILES` sets the number of commits that create the table, by default 100.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import boto3
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fault_proxy import FaultProxy
from pyarrow.fs import S3FileSystem

import tableformat as tf

FILES = int(os.environ.get("TABLEFORMAT_STORE_FILES", "100"))
DELAY = 0.03
ROUNDS = 3
MESSAGES, ROWS_EACH = 10_000, 20


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """The address of moto, in its own process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        address = f"http://127.0.0.1:{port}"
        boto3.client(
            "s3", endpoint_url=address, aws_access_key_id="t", aws_secret_access_key="t", region_name="us-east-1"
        ).create_bucket(Bucket="lake")
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


def messages(first: int, count: int, seed: int) -> pa.Table:
    ids = np.repeat(np.arange(first, first + count), ROWS_EACH)
    return pa.table(
        {
            "id": ids,
            "part": np.tile(np.arange(ROWS_EACH), count),
            "amount": np.random.default_rng(seed).random(len(ids)),
        }
    )


@pytest.mark.parametrize("verb", ["replace", "upsert"])
def test_scan_of_small_files_with_network_latency(store: str, tmp_path: Path, verb: str) -> None:
    with FaultProxy(store).running() as proxy:
        options = {
            "s3.endpoint": proxy.address,
            "s3.access-key-id": "t",
            "s3.secret-access-key": "t",
            "s3.region": "us-east-1",
        }
        catalog = tf.open_catalog(f"s3://lake/{verb}", catalog_file=str(tmp_path / "catalog.db"), **options)
        catalog.create_namespace("db")
        rows = messages(0, MESSAGES, 0)
        table = catalog.create_table("db.t", rows.schema, key=["id", "part"])
        table.append(rows)
        random = np.random.default_rng(1)
        for number in range(FILES):
            batch = messages(int(random.integers(0, MESSAGES - 50)), 50, number)
            table.replace(batch, prefix=["id"]) if verb == "replace" else table.upsert(batch)
        paths = [path.removeprefix("s3://") for path in table.inspect.data_files().column("file_path").to_pylist()]
        files = S3FileSystem(
            endpoint_override=proxy.address, access_key="t", secret_key="t", region="us-east-1", scheme="http"
        )
        proxy.delay = DELAY

        def ours() -> int:
            with tf.open_catalog(f"s3://lake/{verb}", catalog_file=str(tmp_path / "catalog.db"), **options) as fresh:
                return fresh.load_table("db.t").scan().to_arrow().num_rows

        def raw() -> int:
            with ThreadPoolExecutor(pa.io_thread_count()) as threads:
                return sum(threads.map(lambda path: pq.ParquetFile(path, filesystem=files).read().num_rows, paths))

        assert ours() == MESSAGES * ROWS_EACH
        figures = {"scan": measured(proxy, ours), "pyarrow": measured(proxy, raw)}
        print(f"\n{verb}, {len(paths)} data files, {DELAY * 1000:.0f} ms an answer, {pa.io_thread_count()} threads")
        for name, (seconds, kinds, trips) in figures.items():
            requests = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
            print(f"  {name:8} {seconds:.2f} s, {sum(kinds.values())} requests ({requests}), {trips} one after another")
        print(f"  scan / pyarrow {figures['scan'][0] / figures['pyarrow'][0]:.2f}")


def test_commits_with_network_latency(store: str, tmp_path: Path) -> None:
    """Data file, delete file, two manifests, list and metadata file of a replacement."""
    with FaultProxy(store).running() as proxy:
        options = {
            "s3.endpoint": proxy.address,
            "s3.access-key-id": "t",
            "s3.secret-access-key": "t",
            "s3.region": "us-east-1",
        }
        catalog = tf.open_catalog("s3://lake/commits", catalog_file=str(tmp_path / "catalog.db"), **options)
        catalog.create_namespace("db")
        rows = messages(0, MESSAGES, 0)
        table = catalog.create_table("db.t", rows.schema, key=["id", "part"])
        table.append(rows)
        batches = iter(messages(50 * number, 50, number) for number in range(1, 1_000))
        proxy.delay = DELAY

        def replace() -> int:
            return table.replace(next(batches), prefix=["id"]).added_row_count

        seconds, kinds, trips = measured(proxy, replace)
        requests = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        print(f"\nreplacement, {DELAY * 1000:.0f} ms an answer: {seconds:.2f} s, {sum(kinds.values())} requests")
        print(f"  ({requests}), {trips} one after another")
        assert table.scan().count() == MESSAGES * ROWS_EACH


def measured(proxy: FaultProxy, call: Callable[[], int]) -> tuple[float, Counter[str], int]:
    """Median seconds of some rounds, the requests of the last by method and kind of file, and how many waited."""
    seconds = []
    for _ in range(ROUNDS):
        with proxy.armed():
            started = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - started)
            kinds = Counter(map(kind_of, proxy.requests))
            trips = proxy.round_trips()
    return statistics.median(seconds), kinds, trips


def kind_of(request: str) -> str:
    method, _, address = request.partition(" ")
    return f"{method} .{address.partition('?')[0].rsplit('.', 1)[-1]}"
