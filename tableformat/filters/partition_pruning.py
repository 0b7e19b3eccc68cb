"""A filter asked of partition values: which manifests and files it rules out, and what is left of it inside a
partition.

A comparison with the source column of an identity field is decided by the partition value alone. For other transforms
PyIceberg projects the comparison onto the partition field, which can only rule out.
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
from tableformat.filters.file_statistics import partition_value_facts, summary_facts
from tableformat.filters.literals import NANO_TYPES
from tableformat.filters.pruning import ColumnFacts, decide, residual
from tableformat.metadata.manifests.manifest_entry import ManifestFile

_BITS: Final[dict[type[IcebergType], int]] = {IntegerType: 32, LongType: 64}

FactsAt = Callable[[int, Comparison], ColumnFacts]
"""What is known about the partition field at a place of the spec."""


class PartitionPruning:
    """One filter and one partition spec."""

    def __init__(self, bound: BoundFilter, spec: PartitionSpec, schema: Schema) -> None:
        self._bound = bound
        self._identities: dict[int, int] = {}
        """Source field id to the place of its identity field."""
        self._projections: dict[int, list[tuple[int, BoundFilter]]] = {}
        """Comparison, by identity, to the places of other fields and what they must satisfy."""
        self._residuals: dict[tuple[Any, ...], BoundFilter] = {}
        for leaf in comparisons(bound):
            self._prepare(leaf, spec, schema)

    @property
    def is_useful(self) -> bool:
        """Whether any comparison can be asked of a partition value."""
        return bool(self._identities or self._projections)

    def manifest_may_match(self, manifest: ManifestFile) -> bool:
        """Whether the summaries leave room for a matching row; a manifest without summaries does."""
        summaries = manifest.partitions
        if summaries is None or not self.is_useful:
            return True

        def facts_at(place: int, leaf: Comparison) -> ColumnFacts:
            return summary_facts(summaries[place], leaf.field.field_type, manifest.manifest_path)

        return residual(self._bound, lambda leaf: self._decide(leaf, facts_at)) is not FALSE

    def residual_in(self, partition: tuple[Any, ...]) -> BoundFilter:
        """What is left of the filter for rows of a partition."""
        if not self.is_useful:
            return self._bound
        if partition not in self._residuals:

            def facts_at(place: int, _: Comparison) -> ColumnFacts:
                return partition_value_facts(partition[place])

            self._residuals[partition] = residual(self._bound, lambda leaf: self._decide(leaf, facts_at))
        return self._residuals[partition]

    def _decide(self, leaf: Comparison, facts_at: FactsAt) -> BoundFilter:
        place = self._identities.get(leaf.field.field_id)
        if place is not None:
            return decide(leaf, facts_at(place, leaf))
        for place, projected in self._projections.get(id(leaf), ()):
            if residual(projected, partial(_decide_at, facts_at, place)) is FALSE:
                return FALSE
        return leaf

    def _prepare(self, leaf: Comparison, spec: PartitionSpec, schema: Schema) -> None:
        for place, field in enumerate(spec.fields):
            if field.source_id != leaf.field.field_id:
                continue
            if isinstance(field.transform, IdentityTransform):
                self._identities[field.source_id] = place
            else:
                projected = _projection(leaf, field, schema)
                if projected is not None:
                    self._projections.setdefault(id(leaf), []).append((place, projected))


def _decide_at(facts_at: FactsAt, place: int, part: Comparison) -> BoundFilter:
    return decide(part, facts_at(place, part))


def _projection(leaf: Comparison, field: PartitionField, schema: Schema) -> BoundFilter | None:
    """What the partition value of every matching row satisfies, or None when the transform says nothing about it."""
    source_type = leaf.field.field_type
    if isinstance(field.transform, (VoidTransform, UnknownTransform)) or isinstance(source_type, NANO_TYPES):
        return None
    predicate = to_expression(leaf)
    assert isinstance(predicate, UnboundPredicate)
    bound = predicate.bind(schema)
    assert isinstance(bound, BoundPredicate)
    projected: BooleanExpression | None = field.transform.project(field.name, bound)
    if projected is None:
        return None
    wrapped = _wrapped_value(field.transform, source_type)
    if wrapped is not None:
        projected = Or(projected, EqualTo(term=Reference(field.name), value=literal(wrapped)))
    result_type = field.transform.result_type(source_type)
    partition_column = NestedField(field.field_id, field.name, result_type, required=False)
    return bind_filter(projected, Schema(partition_column))


def _wrapped_value(transform: Transform[Any, Any], source_type: IcebergType) -> int | None:
    """The partition of the lowest whole numbers, whose multiple of the width lies below the type's range.

    Writers, ours and Java's, let it wrap around to the top, where no projection looks for them.
    """
    bits = _BITS.get(type(source_type))
    if bits is None or not isinstance(transform, TruncateTransform):
        return None
    lowest = -(2 ** (bits - 1))
    multiple = lowest - lowest % transform.width
    return None if multiple == lowest else multiple + 2**bits
