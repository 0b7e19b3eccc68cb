"""The lakes in which most tests have their tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tableformat as tf


def new_lake(directory: str | Path, **options: Any) -> tf.Catalog:
    """A new lake in this directory, with the namespace `db`. The lake is a context manager, as every catalog is."""
    catalog = tf.open_catalog(str(directory), **options)
    catalog.create_namespace("db")
    return catalog
