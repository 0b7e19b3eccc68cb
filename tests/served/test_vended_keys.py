"""An engine on Iceberg's Java library reads and writes S3 with keys that the server vends."""

from __future__ import annotations

import json
from pathlib import Path

import boto3
from conftest import engine_process
from new_lakes import new_lake
from served_lakes import SCHEMA, own_rows, rows

from tableformat.server.options import ServeOptions
from tableformat.server.running import Server

ROLE = "arn:aws:iam::123456789012:role/reader"


def test_flink_gets_keys_for_the_table(tmp_path: Path) -> None:
    """Flink has no other keys of S3."""
    from moto.server import ThreadedMotoServer

    store = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    store.start()
    try:
        endpoint = "http://{}:{}".format(*store.get_host_and_port())
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
        boto3.client("s3", endpoint_url=endpoint, **keys).create_bucket(Bucket="lake")
        files = {
            "s3.endpoint": endpoint,
            "s3.access-key-id": "test",
            "s3.secret-access-key": "test",
            "s3.region": "us-east-1",
        }
        lake = new_lake("s3://lake/wh", catalog_file=str(tmp_path / "catalog.db"), **files)
        table = lake.create_table("db.orders", SCHEMA, key=["customer", "order"])
        table.append(rows(("A", 1, "old"), ("B", 2, "old")))
        table.delete_prefix({"customer": "A"})
        options = ServeOptions(
            vend_credentials={"client.assume-role.arn": ROLE, "sts.endpoint": endpoint},
            client_config={"s3.endpoint": endpoint, "s3.path-style-access": "true"},
            freshness_seconds=0,
        )
        asked = {
            "header.X-Iceberg-Access-Delegation": "vended-credentials",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        }
        with Server(lake, options, "127.0.0.1", 0) as server:
            variables = {"CATALOG_OPTIONS": json.dumps(asked), "AWS_EC2_METADATA_DISABLED": "true"}
            with engine_process("flink", server.url, **variables) as flink:
                assert flink.sql("SELECT customer, `order`, note FROM served.db.orders") == [("B", 2, "old")]
                flink.sql("INSERT INTO served.db.orders VALUES ('C', 3, 'new')")
        assert own_rows(table) == [("B", 2, "old"), ("C", 3, "new")]
    finally:
        store.stop()
