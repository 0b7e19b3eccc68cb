"""Credentials of S3 for one table (SV-16), from STS on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import requests
from new_lakes import new_lake
from pyiceberg.catalog import load_catalog
from served_lakes import SCHEMA, rows, sorted_rows

import tableformat as tf
from tableformat.errors import InvalidArgumentError, StorageError, UnsupportedFeatureError
from tableformat.server import vended_credentials
from tableformat.server.options import ServeOptions
from tableformat.server.running import Server
from tableformat.server.vended_credentials import CredentialVendor, session_policy, table_prefixes

ROLE = "arn:aws:iam::123456789012:role/reader"
ASKS = {"X-Iceberg-Access-Delegation": "vended-credentials,remote-signing"}
LAKE = {"warehouse": "s3://lake/wh", "s3.access-key-id": "k", "s3.secret-access-key": "s", "s3.region": "us-east-1"}


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    """The properties of S3, with a bucket `lake`."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=endpoint, **keys).create_bucket(Bucket="lake")
    yield {
        "s3.endpoint": endpoint,
        "s3.access-key-id": "test",
        "s3.secret-access-key": "test",
        "s3.region": "us-east-1",
    }
    server.stop()


@pytest.fixture
def lake(store: dict[str, str], tmp_path: Path) -> tf.Catalog:
    catalog = new_lake(f"s3://lake/{tmp_path.name}", catalog_file=str(tmp_path / "catalog.db"), **store)
    table = catalog.create_table("db.orders", SCHEMA, key=["customer", "order"])
    table.append(rows(("A", 1, "old"), ("B", 2, "old")))
    table.delete_prefix({"customer": "A"})
    return catalog


def options(store: dict[str, str], **others: str) -> dict[str, str]:
    return {"client.assume-role.arn": ROLE, "sts.endpoint": store["s3.endpoint"], **others}


def policies() -> list[dict[str, Any]]:
    """The session policies of all calls of STS."""
    from moto.sts.models import sts_backends

    return [json.loads(role.policy) for role in sts_backends["123456789012"]["aws"].assumed_roles]


def test_client_without_keys_of_its_own_reads_and_writes_a_table(lake: tf.Catalog, store: dict[str, str]) -> None:
    with Server(lake, ServeOptions(vend_credentials=options(store)), "127.0.0.1", 0) as server:
        client = load_catalog("served", type="rest", uri=server.url, **{"s3.endpoint": store["s3.endpoint"]})
        served = client.load_table("db.orders")
        assert served.io.properties["s3.session-token"]
        assert served.io.properties["client.region"] == "us-east-1"
        assert sorted_rows(served.scan().to_arrow()) == [("B", 2, "old")]
        served.append(rows(("C", 3, "new")))
        assert client.load_credentials("db.orders", served.location())["s3.access-key-id"]
    assert lake.load_table("db.orders").scan().count() == 2
    location = lake.load_table("db.orders").iceberg.location().removeprefix("s3://")
    policy = policies()[-1]
    assert policy["Statement"][0]["Resource"] == [f"arn:aws:s3:::{location}/*"]
    assert "s3:PutObject" in policy["Statement"][0]["Action"]


def test_credentials_are_given_to_clients_that_ask_and_are_used_again(lake: tf.Catalog, store: dict[str, str]) -> None:
    chosen = options(store, **{"client.assume-role.timeout-sec": "900"})
    with Server(lake, ServeOptions(vend_credentials=chosen, read_only=True), "127.0.0.1", 0) as server:
        address = f"{server.url}/v1/namespaces/db/tables/orders"
        assert "storage-credentials" not in requests.get(address, timeout=30).json()
        before = len(policies())
        answers = [requests.get(address, headers=ASKS, timeout=30).json() for _ in range(2)]
        (vended,) = answers[0]["storage-credentials"]
        assert answers[0] == answers[1]
        assert len(policies()) == before + 1
        assert policies()[-1]["Statement"][0]["Action"] == ["s3:GetObject"]
        refreshed = requests.get(f"{server.url}/{vended['config']['client.refresh-credentials-endpoint']}", timeout=30)
        assert refreshed.json()["storage-credentials"] == [vended]
        assert vended["prefix"] == answers[0]["metadata"]["location"]
        assert answers[0]["config"]["s3.session-token"] == vended["config"]["s3.session-token"]


def test_outage_of_sts_is_503_without_a_secret(lake: tf.Catalog, store: dict[str, str]) -> None:
    chosen = options(store, **{"sts.endpoint": "http://127.0.0.1:9"})
    vendor = CredentialVendor(chosen, {**lake.iceberg.properties, "s3.secret-access-key": "hush"}, read_only=False)
    table = lake.load_table("db.orders").iceberg
    with pytest.raises(StorageError) as raised:
        vendor.credentials(("db", "orders"), table.metadata, table.metadata_location)
    assert ROLE in str(raised.value)
    assert "hush" not in str(raised.value)


def test_policy_reaches_the_files_of_the_table_alone() -> None:
    text = session_policy(["s3://lake/wh/a*b/", "s3://other/x/"], partition="aws-cn", read_only=False)
    objects, _, listed, *others = json.loads(text)["Statement"]
    assert objects["Resource"] == ["arn:aws-cn:s3:::lake/wh/a${*}b/*", "arn:aws-cn:s3:::other/x/*"]
    assert listed["Condition"] == {"StringLike": {"s3:prefix": ["wh/a${*}b/*"]}}
    assert len(others) == 2


def test_only_locations_below_the_warehouse_get_credentials(tmp_path: Path) -> None:
    table = new_lake(tmp_path / "lake").create_table("db.t", SCHEMA)
    vendor = CredentialVendor({"client.assume-role.arn": ROLE}, LAKE, read_only=False)
    for location in (
        "s3://lake/wh",
        "s3://lake/wh/",
        "s3://lake/whole/t",
        "s3://lake",
        "s3://else/wh/t",
        "file:///wh/t",
    ):
        metadata = table.iceberg.metadata.model_copy(update={"location": location, "properties": {}})
        assert vendor.credentials(("db", "t"), metadata, None) is None


def test_prefixes_are_those_of_data_and_metadata(tmp_path: Path) -> None:
    metadata = new_lake(tmp_path / "lake").create_table("db.t", SCHEMA).iceberg.metadata
    properties = {"write.data.path": "s3://data/t", "write.metadata.path": "s3a://lake/wh/t/meta"}
    moved = metadata.model_copy(update={"location": "s3://lake/wh/t", "properties": properties})
    found = table_prefixes(moved, "s3://lake/wh/t/metadata/1.metadata.json")
    assert found == ["s3://data/t/", "s3://lake/wh/t/"]


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"client.assume-role.arn": "reader"},
        {"client.assume-role.arn": ROLE, "client.assume-role.timeout-sec": "60"},
        {"client.assume-role.arn": ROLE, "allowed-locations": "/local"},
        {"client.assume-role.arn": ROLE, "client.assume-role.arm": "x"},
    ],
)
def test_options_that_cannot_be_used_are_refused(chosen: dict[str, str]) -> None:
    with pytest.raises(InvalidArgumentError):
        CredentialVendor(chosen, LAKE, read_only=False)


def test_missing_boto3_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vended_credentials, "find_spec", lambda _name: None)
    with pytest.raises(UnsupportedFeatureError) as raised:
        CredentialVendor({"client.assume-role.arn": ROLE}, LAKE, read_only=False)
    assert "tableformat[sts]" in str(raised.value)
