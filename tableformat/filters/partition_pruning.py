"""Evaluates a filter on partition values: which manifests and files it rules out, and the residual for each partition.

The partition value alone decides a comparison with the source column of an identity field. For other transforms,
PyIceberg projects the comparison to the partition field. A projection can only rule out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from pyiceberg.expressions import BooleanExpression, BoundPredicate, EqualTo, Or, Reference, UnboundPredicate
from pyiceberg.expressions.literals import literal
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform, Transform, TruncateTransform, UnknownTransform, VoidTransform
from pyiceberg.types import IcebergType, IntegerType, LongType, NestedField

from tableformat.filters.bound_filter import FALSE, BoundFilter, Comparison, bind_filter, comparisons, to_expression
from tableformat.filters.file_statistics import partition_value_statistics, summary_statistics
from tableformat.filters.literals import NANO_TYPES
from tableformat.filters.pruning import ColumnStatistics, decide, residual
from tableformat.metadata.manifests.manifest_entry import ManifestFile

_BITS: Final[dict[type[IcebergType], int]] = {IntegerType: 32, LongType: 64}

StatisticsAt = Callable[[int, Comparison], ColumnStatistics]
"""The statistics of the partition field at an index of the spec."""


class PartitionPruning:
    """One filter and one partition spec."""

    def __init__(self, bound: BoundFilter, spec: PartitionSpec, schema: Schema) -> None:
        self._bound = bound
        self._identities: dict[int, int] = {}
        """Source field id to the index of its identity field."""
        self._projections: dict[int, list[tuple[int, BoundFilter]]] = {}
        """Comparison, by identity, to the indexes of other fields and their projected conditions."""
        self._residuals: dict[tuple[Any, ...], BoundFilter] = {}
        for leaf in comparisons(bound):
            self._prepare(leaf, spec, schema)

    @property
    def is_useful(self) -> bool:
        """Whether a partition value can decide any comparison."""
        return bool(self._identities or self._projections)

    def manifest_may_match(self, manifest: ManifestFile) -> bool:
        """Whether a row may match according to the summaries. True for a manifest without summaries."""
        summaries = manifest.partitions
        if summaries is None or not self.is_useful:
            return True

        def statistics_at(index: int, leaf: Comparison) -> ColumnStatistics:
            return summary_statistics(summaries[index], leaf.field.field_type, manifest.manifest_path)

        return residual(self._bound, lambda leaf: self._decide(leaf, statistics_at)) is not FALSE

    def residual_in(self, partition: tuple[Any, ...]) -> BoundFilter:
        """The residual filter for the rows of a partition."""
        if not self.is_useful:
            return self._bound
        if partition not in self._residuals:

            def statistics_at(index: int, _: Comparison) -> ColumnStatistics:
                return partition_value_statistics(partition[index])

            self._residuals[partition] = residual(self._bound, lambda leaf: self._decide(leaf, statistics_at))
        return self._residuals[partition]

    def decided_in(self, leaf: Comparison, partition: tuple[Any, ...]) -> BoundFilter:
        """TRUE or FALSE if the partition decides a comparison of the filter, otherwise the comparison."""
        return self._decide(leaf, lambda index, _: partition_value_statistics(partition[index]))

    def _decide(self, leaf: Comparison, statistics_at: StatisticsAt) -> BoundFilter:
        index = self._identities.get(leaf.field.field_id)
        if index is not None:
            return decide(leaf, statistics_at(index, leaf))
        for index, projected in self._projections.get(id(leaf), ()):
            if residual(projected, partial(_decide_at, statistics_at, index)) is FALSE:
                return FALSE
        return leaf

    def _prepare(self, leaf: Comparison, spec: PartitionSpec, schema: Schema) -> None:
        for index, field in enumerate(spec.fields):
            if field.source_id != leaf.field.field_id:
                continue
            if isinstance(field.transform, IdentityTransform):
                self._identities[field.source_id] = index
            else:
                projected = _projection(leaf, field, schema)
                if projected is not None:
                    self._projections.setdefault(id(leaf), []).append((index, projected))


def _decide_at(statistics_at: StatisticsAt, index: int, part: Comparison) -> BoundFilter:
    return decide(part, statistics_at(index, part))


def _projection(leaf: Comparison, field: PartitionField, schema: Schema) -> BoundFilter | None:
    """A condition on the partition value of every matching row; None if the transform allows no conclusion."""
    source_type = leaf.field.field_type
    if isinstance(field.transform, (VoidTransform, UnknownTransform)) or isinstance(source_type, NANO_TYPES):
        return None
    predicate = to_expression(leaf)
    assert isinstance(predicate, UnboundPredicate)
    bound = predicate.bind(schema)
    assert isinstance(bound, BoundPredicate)
    try:
        projected: BooleanExpression | None = field.transform.project(field.name, bound)
    except OverflowError:
        # PyIceberg adds or subtracts a day from a literal, and Python's dates are limited to the years 1 to 9999.
        return None
    if projected is None:
        return None
    wrapped = _wrapped_value(field.transform, source_type)
    if wrapped is not None:
        projected = Or(projected, EqualTo(term=Reference(field.name), value=literal(wrapped)))
    result_type = field.transform.result_type(source_type)
    partition_column = NestedField(field.field_id, field.name, result_type, required=False)
    return bind_filter(projected, Schema(partition_column))


def _wrapped_value(transform: Transform[Any, Any], source_type: IcebergType) -> int | None:
    """The partition of the lowest whole numbers, whose multiple of the width is below the range of the type.

    Writers, ours and Java's, let it wrap around to the greatest numbers, where no projection finds it.
    """
    bits = _BITS.get(type(source_type))
    if bits is None or not isinstance(transform, TruncateTransform):
        return None
    lowest = -(2 ** (bits - 1))
    multiple = lowest - lowest % transform.width
    return None if multiple == lowest else multiple + 2**bits
