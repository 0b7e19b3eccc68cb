"""Iceberg's transforms with Spark's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyiceberg.transforms import BucketTransform, Transform, TruncateTransform

_SPARK_TRANSFORMS: Final = {"year": "years", "month": "months", "day": "days", "hour": "hours"}


def spark_transform(transform: Transform[Any, Any], path: Sequence[str]) -> dict[str, Any]:
    """A transform of a column, in the form that `TransformJson` of the Java side reads."""
    width = {}
    if isinstance(transform, BucketTransform):
        width = {"width": transform.num_buckets}
    elif isinstance(transform, TruncateTransform):
        width = {"width": transform.width}
    name = str(transform).split("[", maxsplit=1)[0]
    return {"transform": _SPARK_TRANSFORMS.get(name, name), **width, "column": path}
