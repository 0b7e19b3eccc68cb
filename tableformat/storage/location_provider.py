"""The location provider of a table: it chooses the locations of new files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyiceberg.table.locations import LocationProvider, load_location_provider

from tableformat.errors import InvalidArgumentError

_PROVIDER: Final = "write.py-location-provider.impl"


def location_provider(table_location: str, properties: Mapping[str, str]) -> LocationProvider:
    """PyIceberg's provider, or the class that the table names. Raises InvalidArgumentError if the class is not
    available."""
    named = properties.get(_PROVIDER)
    if not named:
        return load_location_provider(table_location, dict(properties))
    try:
        return load_location_provider(table_location, dict(properties))
    except Exception as error:  # The class is anybody's, and so are its errors.
        raise InvalidArgumentError(
            f"table property {_PROVIDER} must be a class that can be imported here, as in 'package.module.Provider', "
            f"but {named!r} cannot: {error}. Install the class, or call remove_properties({_PROVIDER!r})."
        ) from error
