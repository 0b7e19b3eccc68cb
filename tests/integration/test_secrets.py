"""No text that the library produces contains credentials of a store or a catalog."""

from __future__ import annotations

import logging
import pickle
import traceback
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from new_lakes import new_lake
from test_object_store import FILE_IOS, few_attempts, s3_options  # noqa: F401 - the fixtures

import tableformat as tf
from tableformat.errors import TableFormatError

SECRET, TOKEN, PASSWORD = "sentinel/Secret+Key", "sentinel-session-token", "sentinel-password"
SCHEMA: Final = pa.schema([pa.field("id", pa.int64(), nullable=False)])


def refuse_secrets(text: str) -> None:
    for secret in (SECRET, TOKEN, PASSWORD):
        assert secret not in text


@pytest.mark.usefixtures("few_attempts")
@pytest.mark.parametrize("file_io", FILE_IOS)
def test_secrets_do_not_appear_in_texts_errors_logs_or_files(
    s3_options: dict[str, str],  # noqa: F811
    tmp_path: Path,
    file_io: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="tableformat")
    caplog.set_level(logging.DEBUG, logger="pyiceberg")
    name = file_io.rsplit(".", 1)[1].lower()
    options = {
        **s3_options,
        "s3.secret-access-key": SECRET,
        "s3.session-token": TOKEN,
        "py-io-impl": file_io,
    }
    catalog = new_lake(f"s3://lake/secret-{name}", catalog_file=str(tmp_path / "catalog.db"), **options)
    table = catalog.create_table("db.t", SCHEMA, key=["id"])
    results = [table.append(pa.table({"id": [1, 2]}, schema=SCHEMA)), table.delete_prefix({"id": 1})]
    results += [table.maintenance.convert_deletes(dry_run=True), table.maintenance.health(), table.verify(deep=True)]
    texts = [str(each) + repr(each) for each in (catalog, table, table.scan(), table.changes(), *results)]
    texts += [str(table.scan().explain()), str(table.properties), str(table.history())]
    for error in errors_of(catalog, table):
        texts.append("".join(traceback.format_exception(error)))
    for text in (*texts, caplog.text):
        refuse_secrets(text)
    import boto3

    plain = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=s3_options["s3.endpoint"], **plain)
    listed = client.list_objects_v2(Bucket="lake", Prefix=f"secret-{name}/")["Contents"]
    assert len(listed) > 4
    for each in listed:
        content = client.get_object(Bucket="lake", Key=each["Key"])["Body"].read()
        refuse_secrets(content.decode("latin-1"))
    refuse_secrets((tmp_path / "catalog.db").read_bytes().decode("latin-1"))


def errors_of(catalog: tf.Catalog, table: tf.Table) -> list[TableFormatError]:
    """The errors for a wrong call, a missing file, a missing bucket and a store that does not exist."""
    found = []
    away = {**catalog.iceberg.properties, "s3.endpoint": "http://127.0.0.1:9", "s3.connect-timeout": "1"}
    for call in (
        lambda: catalog.load_table("db.nope"),
        lambda: table.append(pa.table({"id": ["x"]})),
        lambda: tf.read_metadata(f"{table.location}/metadata/nope.metadata.json", **catalog.iceberg.properties),
        lambda: tf.read_metadata("s3://no-such-bucket/x/v1.metadata.json", **catalog.iceberg.properties),
        lambda: tf.read_metadata(f"{table.location}/metadata/nope.metadata.json", **away),
    ):
        with pytest.raises(TableFormatError) as caught:
            call()
        assert not isinstance(pickle.loads(pickle.dumps(caught.value)), str)
        found.append(caught.value)
    return found


@pytest.mark.parametrize("uri", ["postgresql+psycopg://me:{}@127.0.0.1:9/db", "mysql+nothing://me:{}@127.0.0.1/db"])
def test_catalog_password_does_not_appear_in_errors(uri: str, tmp_path: Path) -> None:
    with pytest.raises(TableFormatError) as caught:
        tf.open_catalog("shared", type="sql", uri=uri.format(PASSWORD), warehouse=str(tmp_path)).list_namespaces()
    refuse_secrets("".join(traceback.format_exception(caught.value)))
