"""S3A options for Spark, converted from the S3 options with which Python opens a table's files."""

from __future__ import annotations

from typing import Final

from pyiceberg.io import (
    S3_ACCESS_KEY_ID,
    S3_ENDPOINT,
    S3_FORCE_VIRTUAL_ADDRESSING,
    S3_REGION,
    S3_SECRET_ACCESS_KEY,
    S3_SESSION_TOKEN,
    FileIO,
)
from pyiceberg.utils.properties import property_as_bool

_NAMES: Final = {
    S3_ACCESS_KEY_ID: "fs.s3a.access.key",
    S3_SECRET_ACCESS_KEY: "fs.s3a.secret.key",
    S3_SESSION_TOKEN: "fs.s3a.session.token",
    S3_ENDPOINT: "fs.s3a.endpoint",
    S3_REGION: "fs.s3a.endpoint.region",
}
_PROVIDERS: Final = "fs.s3a.aws.credentials.provider"


def s3_options(io: FileIO) -> dict[str, str]:
    """LK-15: the S3 options of the catalog, either configured or vended by its server. Empty if it has none."""
    given = io.properties
    options = {name: str(given[option]) for option, name in _NAMES.items() if given.get(option)}
    if S3_ENDPOINT in given:
        by_host = property_as_bool(given, S3_FORCE_VIRTUAL_ADDRESSING, False)
        options["fs.s3a.path.style.access"] = str(not by_host).lower()
    if S3_ACCESS_KEY_ID in given:
        kind = "Temporary" if given.get(S3_SESSION_TOKEN) else "Simple"
        options[_PROVIDERS] = f"org.apache.hadoop.fs.s3a.{kind}AWSCredentialsProvider"
    return options
