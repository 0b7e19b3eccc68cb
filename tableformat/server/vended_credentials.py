"""Credentials of S3 for one table, by STS AssumeRole with a session policy (SV-16).

    table s3://lake/wh/db/orders    ->  keys for an hour that read and write s3://lake/wh/db/orders/* alone

The role is the server's limit, the session policy the table's: a client can do what both allow.
"""

from __future__ import annotations

import json
import posixpath
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import quote, urlsplit

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Identifier

from tableformat.errors import InvalidArgumentError, StorageError, UnknownOptionError, UnsupportedFeatureError
from tableformat.storage.bounded_cache import BoundedCache

ROLE_ARN: Final = "client.assume-role.arn"
EXTERNAL_ID: Final = "client.assume-role.external-id"
SESSION_NAME: Final = "client.assume-role.session-name"
TIMEOUT_SEC: Final = "client.assume-role.timeout-sec"
REGION: Final = "client.assume-role.region"
STS_ENDPOINT: Final = "sts.endpoint"
ALLOWED_LOCATIONS: Final = "allowed-locations"
OPTIONS: Final = (ROLE_ARN, EXTERNAL_ID, SESSION_NAME, TIMEOUT_SEC, REGION, STS_ENDPOINT, ALLOWED_LOCATIONS)
"""The names of Iceberg's own AWS properties, where it has one."""

_SCHEMES: Final = ("s3", "s3a", "s3n")
_SECONDS: Final = range(900, 43_201)
_SECONDS_DEFAULT: Final = 3_600
_CACHED: Final = 10_000
_PATHS: Final = ("write.data.path", "write.object-storage.path", "write.folder-storage.path", "write.metadata.path")
_READ: Final = ("s3:GetObject",)
_WRITE: Final = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
_WILDCARD: Final = re.compile(r"[*?$]")


@dataclass(frozen=True, slots=True)
class VendedCredentials:
    """Keys for the files of one table."""

    prefix: str
    """The location for which clients use them."""
    config: Mapping[str, str]
    """Properties of the client, with the secrets."""

    def __repr__(self) -> str:
        return f"VendedCredentials({self.prefix!r})"

    def to_json(self) -> dict[str, Any]:
        """In the form of the REST specification."""
        return {"prefix": self.prefix, "config": dict(self.config)}


class CredentialVendor:
    """Gets credentials for tables, and uses them again during the first half of their lifetime. For many threads."""

    def __init__(self, options: Mapping[str, str], catalog: Mapping[str, str], *, read_only: bool) -> None:
        """`options` have the names of `OPTIONS`; `catalog` are the catalog's properties, with the server's own keys.

        Raises InvalidArgumentError for options that cannot be used, and UnsupportedFeatureError without boto3.
        """
        self._role = _checked(options)
        self._seconds = int(options.get(TIMEOUT_SEC, _SECONDS_DEFAULT))
        self._external_id = options.get(EXTERNAL_ID)
        self._session_name = options.get(SESSION_NAME, "tableformat-serve")
        self._allowed = _allowed_locations(options, catalog)
        self._read_only = read_only
        self._region = options.get(REGION) or _first(catalog, "s3.region", "client.region")
        self._sts = _sts_client(self._region, options.get(STS_ENDPOINT), catalog)
        self._kept: BoundedCache[str, tuple[float, Mapping[str, str]]] = BoundedCache(_CACHED)

    def credentials(
        self, identifier: Identifier, metadata: TableMetadata, metadata_location: str | None
    ) -> VendedCredentials | None:
        """Credentials for the table. None if it has no file in an allowed location of S3.

        Raises StorageError if STS gives none.
        """
        prefixes = [each for each in table_prefixes(metadata, metadata_location) if self._is_allowed(each)]
        if not prefixes:
            return None
        policy = session_policy(prefixes, partition=self._role.split(":")[1], read_only=self._read_only)
        keys = {**self._keys(policy), "client.refresh-credentials-endpoint": _endpoint(identifier)}
        return VendedCredentials(metadata.location if len(prefixes) == 1 else "s3", keys)

    def _is_allowed(self, prefix: str) -> bool:
        return any(prefix.startswith(allowed) and prefix != allowed for allowed in self._allowed)

    def _keys(self, policy: str) -> Mapping[str, str]:
        kept = self._kept.get(policy)
        if kept is not None and kept[0] - time.time() > self._seconds / 2:
            return kept[1]
        expires, keys = self._assumed(policy)
        self._kept.put(policy, (expires, keys), 1)
        return keys

    def _assumed(self, policy: str) -> tuple[float, Mapping[str, str]]:
        from botocore.exceptions import BotoCoreError, ClientError

        optional = {} if self._external_id is None else {"ExternalId": self._external_id}
        try:
            answer = self._sts.assume_role(
                RoleArn=self._role,
                RoleSessionName=self._session_name,
                DurationSeconds=self._seconds,
                Policy=policy,
                **optional,
            )["Credentials"]
        except (BotoCoreError, ClientError) as error:
            raise StorageError(
                f"no credentials for the client: STS did not assume the role {self._role}: {error}. Check the role, "
                "its trust policy, and the server's own credentials."
            ) from error
        expires = answer["Expiration"].timestamp()
        region = {} if self._region is None else {"client.region": self._region}
        return expires, {
            "s3.access-key-id": answer["AccessKeyId"],
            "s3.secret-access-key": answer["SecretAccessKey"],
            "s3.session-token": answer["SessionToken"],
            "s3.session-token-expires-at-ms": str(int(expires * 1_000)),
            **region,
        }


def table_prefixes(metadata: TableMetadata, metadata_location: str | None) -> list[str]:
    """The locations of S3 that hold the files of a table, as `s3://bucket/key/`, without those inside another one."""
    locations = [metadata.location, *(metadata.properties[name] for name in _PATHS if name in metadata.properties)]
    if metadata_location is not None:
        locations.append(posixpath.dirname(metadata_location))
    prefixes = sorted({prefix for prefix in map(_prefix, locations) if prefix is not None})
    return [each for each in prefixes if not any(each != other and each.startswith(other) for other in prefixes)]


def session_policy(prefixes: Iterable[str], *, partition: str, read_only: bool) -> str:
    """The IAM policy that allows the objects under these prefixes, and listing them.

    >>> import json
    >>> policy = session_policy(["s3://lake/db/t/"], partition="aws", read_only=True)
    >>> json.loads(policy)["Statement"][0]["Resource"]
    ['arn:aws:s3:::lake/db/t/*']
    """
    by_bucket: dict[str, list[str]] = {}
    for prefix in prefixes:
        bucket, _, key = prefix.removeprefix("s3://").partition("/")
        by_bucket.setdefault(bucket, []).append(_WILDCARD.sub(r"${\g<0>}", key))
    arn = f"arn:{partition}:s3:::"
    objects = [f"{arn}{bucket}/{key}*" for bucket, keys in by_bucket.items() for key in keys]
    statements: list[dict[str, Any]] = [_allow(_READ if read_only else (*_READ, *_WRITE), objects)]
    for bucket, keys in by_bucket.items():
        statements.append(_allow(("s3:GetBucketLocation",), [f"{arn}{bucket}"]))
        listed = {"StringLike": {"s3:prefix": [f"{key}*" for key in keys]}}
        statements.append({**_allow(("s3:ListBucket",), [f"{arn}{bucket}"]), "Condition": listed})
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))


def _allow(actions: Iterable[str], resources: list[str]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": resources}


def _prefix(location: str) -> str | None:
    """The location as `s3://bucket/key/`. None outside of S3 and for a whole bucket."""
    parts = urlsplit(location, allow_fragments=False)
    key = location.partition("://")[2].partition("/")[2].strip("/")
    return f"s3://{parts.netloc}/{key}/" if parts.scheme in _SCHEMES and parts.netloc and key else None


def _allowed_locations(options: Mapping[str, str], catalog: Mapping[str, str]) -> tuple[str, ...]:
    """Tables directly at one of these locations get no credentials, because these would reach the other tables."""
    stated = options.get(ALLOWED_LOCATIONS)
    texts = [text.strip() for text in stated.split(",")] if stated else [catalog.get("warehouse", "")]
    allowed = []
    for text in texts:
        parts = urlsplit(text, allow_fragments=False)
        if parts.scheme not in _SCHEMES or not parts.netloc:
            raise InvalidArgumentError(
                f"credentials can be vended for locations of S3 only, not {text!r}. Set {ALLOWED_LOCATIONS} to the "
                "locations below which tables may get credentials, such as s3://lake/warehouse."
            )
        allowed.append(_prefix(text) or f"s3://{parts.netloc}/")
    return tuple(allowed)


def _checked(options: Mapping[str, str]) -> str:
    """The role. Raises InvalidArgumentError for options that cannot be used."""
    for name in options:
        if name not in OPTIONS:
            raise UnknownOptionError(name, OPTIONS, where="the vended credentials")
    role = options.get(ROLE_ARN, "")
    if not re.fullmatch(r"[^:]+:[^:]+:iam:.*:role/.+", role):
        raise InvalidArgumentError(
            f"vended credentials need {ROLE_ARN}, such as arn:aws:iam::123456789012:role/reader, not {role!r}."
        )
    seconds = options.get(TIMEOUT_SEC, str(_SECONDS_DEFAULT))
    if not (seconds.isdecimal() and int(seconds) in _SECONDS):
        raise InvalidArgumentError(
            f"{TIMEOUT_SEC} must be between {_SECONDS[0]} and {_SECONDS[-1]} seconds, not {seconds!r}."
        )
    return role


def _sts_client(region: str | None, endpoint: str | None, catalog: Mapping[str, str]) -> Any:
    """A client with the server's own credentials: those of the catalog's files, or else the environment's."""
    if find_spec("boto3") is None:
        raise UnsupportedFeatureError("vended credentials need boto3. Run: pip install 'tableformat[sts]'")
    import boto3
    from botocore.config import Config

    return boto3.client(
        "sts",
        region_name=region,
        endpoint_url=endpoint,
        # A client waits for the answer.
        config=Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2}),
        aws_access_key_id=_first(catalog, "s3.access-key-id", "client.access-key-id"),
        aws_secret_access_key=_first(catalog, "s3.secret-access-key", "client.secret-access-key"),
        aws_session_token=_first(catalog, "s3.session-token", "client.session-token"),
    )


def _first(properties: Mapping[str, str], *names: str) -> str | None:
    return next((properties[name] for name in names if properties.get(name)), None)


def _endpoint(identifier: Identifier) -> str:
    """Where Iceberg's Java library gets new credentials, relative to the address of the catalog."""
    namespace = quote("\x1f".join(identifier[:-1]), safe="")
    return f"v1/namespaces/{namespace}/tables/{quote(identifier[-1], safe='')}/credentials"
