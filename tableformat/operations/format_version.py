"""The format version of a table: requested by the property `format-version`, stored in the metadata, never lowered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyiceberg.exceptions import BadRequestError
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import UpgradeFormatVersionUpdate

from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.metadata.table_file import NEWEST_FORMAT_VERSION

FORMAT_VERSION: Final = "format-version"
"""The property with which Iceberg's catalogs and Spark's TBLPROPERTIES request a version. It is not stored as a
property."""
DEFAULT_FORMAT_VERSION: Final = 2


def requested_format_version(properties: Mapping[str, str], default: int = DEFAULT_FORMAT_VERSION) -> int:
    """FM-3, FM-19: the version that the properties request.

    Raises InvalidArgumentError for an invalid version, UnsupportedFeatureError for a version that is newer than this
    library writes.
    """
    text = properties.get(FORMAT_VERSION)
    if text is None:
        return default
    if not (text.strip().isascii() and text.strip().isdecimal() and len(text) < 10) or int(text) == 0:
        raise InvalidArgumentError(f"{FORMAT_VERSION} must be a whole number such as '3', not {text!r}.")
    if int(text) > NEWEST_FORMAT_VERSION:
        raise UnsupportedFeatureError(
            f"{FORMAT_VERSION} {text.strip()} is newer than {NEWEST_FORMAT_VERSION}, the newest version that this "
            "library writes."
        )
    return int(text)


def upgrade_to(metadata: TableMetadata, version: int) -> tuple[UpgradeFormatVersionUpdate, ...]:
    """FM-19: the update that upgrades the table to the version; empty if it already has the version. Raises
    InvalidArgumentError for a downgrade."""
    if version < metadata.format_version:
        raise InvalidArgumentError(
            f"the table has {FORMAT_VERSION} {metadata.format_version} and cannot be downgraded to {version}: its "
            "files may use features that the older version lacks."
        )
    if version == metadata.format_version:
        return ()
    return (UpgradeFormatVersionUpdate.model_validate({FORMAT_VERSION: version}),)


def format_version_of_new(properties: Mapping[str, str]) -> int:
    """FM-19: the version of a new table. Tables of version 1 can be read, but are not created."""
    version = requested_format_version(properties)
    if version < DEFAULT_FORMAT_VERSION:
        raise UnsupportedFeatureError(
            f"tables of {FORMAT_VERSION} {version} can be read but not created, because they cannot have deletes. "
            f"Nothing was created. Remove {FORMAT_VERSION} to use version {DEFAULT_FORMAT_VERSION}."
        )
    return version


def _refusal(version: int, catalog_name: str, reason: object) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"catalog {catalog_name!r} does not support tables of format version {version}: {reason}. Use the embedded "
        "catalog (open_catalog of a directory), or a REST catalog whose server supports this version."
    )


@contextmanager
def refusals_of_version(version: int, catalog_name: str) -> Iterator[None]:
    """LK-11: raise UnsupportedFeatureError if the catalog does not support tables of the version.

    The server of a REST catalog decides which versions it supports.
    """
    try:
        yield
    except (NotImplementedError, BadRequestError, ValueError) as error:
        is_about_version = not isinstance(error, ValueError) or "format version" in str(error)
        if version < 3 or isinstance(error, InvalidArgumentError) or not is_about_version:
            raise
        raise _refusal(version, catalog_name, error) from error
