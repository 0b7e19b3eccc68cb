"""Predicates with transforms of columns, evaluated on the partition values of data files.

`system.bucket(4, id) = 2` is a comparison of the partition field `bucket[4]` of `id`, if the file's spec has one. Each
predicate is rewritten for each spec: transforms and columns become partition fields. The result has the two conversions
of every predicate (`expressions.py`): the weaker one rules files out, the exact one decides all rows of a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pyiceberg.partitioning import PartitionField
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import BucketTransform, IdentityTransform, Transform, TruncateTransform
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from spark_ext.service.wire.expressions import SparkExpression, exact_filter, pruning_filter, transform_call
from spark_ext.service.wire.transforms import spark_transform
from tableformat.errors import TableFormatError
from tableformat.filters.bound_filter import FALSE, TRUE, BoundFilter, Comparison, bind_filter
from tableformat.filters.file_statistics import partition_value_statistics
from tableformat.filters.pruning import decide, residual
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.plan import ScanPlan

_AS_IN_SPARK: Final = (
    *(BinaryType, DateType, DecimalType, FixedType, IntegerType, LongType, StringType, TimestampType),
    TimestamptzType,
)
"""Column types whose values Spark's functions receive in their stored form. A uuid is text in Spark."""
_LOWEST_INTEGER: Final = -(2**31)


class PartitionPredicates:
    """The predicates of one scan of a table, evaluated on the partitions of its files (SP-46)."""

    def __init__(self, predicates: Sequence[SparkExpression], view: SnapshotView) -> None:
        self._predicates = predicates
        self._view = view
        self._by_spec: dict[int, _OfSpec] = {}
        self._may_match: dict[tuple[int, tuple[Any, ...]], bool] = {}
        self._decided: dict[tuple[int, tuple[Any, ...]], frozenset[int]] = {}

    @property
    def with_transforms(self) -> frozenset[int]:
        """The indexes of the predicates that call a transform. For other predicates, the planner already uses the
        partitions."""
        return frozenset(index for index, each in enumerate(self._predicates) if _calls_transform(each))

    def narrowed(self, plan: ScanPlan, decided: Sequence[int] = ()) -> ScanPlan:
        """The plan without the files of partitions that have no matching row.

        `decided` are the indexes of predicates that Spark does not check on the rows. Raises TableFormatError if the
        partition of a file does not decide such a predicate with transforms for all its rows.
        """
        if not self.with_transforms:
            return plan
        asked_of_nobody = self.with_transforms.intersection(decided)
        tasks = tuple(task for task in plan.tasks if self.may_match(task.data_file))
        covered = tuple(file for file in plan.covered if self.may_match(file))
        for file in (*(task.data_file for task in tasks), *covered):
            if not self._decided_in(file).issuperset(asked_of_nobody):
                raise TableFormatError(
                    f"{file.file_path} was added after Spark planned the statement, and its partition does not "
                    "decide a predicate that Spark left to the table. Nothing was read. Run the statement again."
                )
        return replace(plan, tasks=tasks, covered=covered)

    def decided_by(self, plan: ScanPlan) -> list[int]:
        """The indexes of the predicates with transforms that hold for all rows, or for none, of each file of a plan."""
        decided = set(self.with_transforms)
        for file in (*(task.data_file for task in plan.tasks), *plan.covered):
            decided &= self._decided_in(file)
        return sorted(decided)

    def may_match(self, file: DataFile) -> bool:
        """Whether a file with this partition may have a row that passes all predicates."""
        key = (file.spec_id, file.partition)
        if key not in self._may_match:
            spec = self._of_spec(file.spec_id)
            self._may_match[key] = spec.answer(spec.weaker, file.partition) is not FALSE
        return self._may_match[key]

    def _decided_in(self, file: DataFile) -> frozenset[int]:
        key = (file.spec_id, file.partition)
        if key not in self._decided:
            spec = self._of_spec(file.spec_id)
            self._decided[key] = frozenset(
                index
                for index, exact in enumerate(spec.exact)
                if exact is not None and spec.answer(exact, file.partition) in (TRUE, FALSE)
            )
        return self._decided[key]

    def _of_spec(self, spec_id: int) -> _OfSpec:
        if spec_id not in self._by_spec:
            spec = self._view.spec(spec_id)
            fields = _Fields.of(spec.fields, self._view.schema, self._view.metadata)
            self._by_spec[spec_id] = _OfSpec.of(self._predicates, fields)
        return self._by_spec[spec_id]


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields of one spec that represent a column or a transform of one."""

    names: Mapping[tuple[Any, ...], str]
    """Maps transform, width and column to a unique field name. The transform of a column itself is "identity"."""
    schema: Schema
    indexes: Mapping[int, int]
    """Maps ids of partition fields to their indexes in the spec."""

    @classmethod
    def of(cls, fields: Sequence[PartitionField], schema: Schema, metadata: TableMetadata) -> _Fields:
        names, columns, indexes = {}, [], {}
        for index, field in enumerate(fields):
            source = schema.find_column_name(field.source_id)
            if source is None:
                continue
            source_type = schema.find_type(source)
            if not _says_what_spark_computes(field, source_type, metadata):
                continue
            described = spark_transform(field.transform, source.split("."))
            name = f"partition_{index}"
            names[described["transform"], described.get("width"), source] = name
            columns.append(NestedField(field.field_id, name, field.transform.result_type(source_type), required=False))
            indexes[field.field_id] = index
        return cls(names, Schema(*columns), indexes)

    def rewritten(self, expression: SparkExpression) -> SparkExpression:
        """The expression over the partition fields. Parts without a partition field become a column that does not exist
        in their schema."""
        call = transform_call(expression)
        if call is not None or "column" in expression:
            wanted = (
                ("identity", None, expression.get("column")) if call is None else (call.name, call.width, call.column)
            )
            return {"column": [self.names.get((*wanted[:2], ".".join(wanted[2] or ())), "")]}
        if "arguments" not in expression:
            return expression
        return {**expression, "arguments": [self.rewritten(each) for each in expression["arguments"]]}


@dataclass(frozen=True, slots=True)
class _OfSpec:
    """The predicates over the partition fields of one spec."""

    weaker: BoundFilter
    exact: tuple[BoundFilter | None, ...]
    indexes: Mapping[int, int]

    @classmethod
    def of(cls, predicates: Sequence[SparkExpression], fields: _Fields) -> _OfSpec:
        rewritten = [fields.rewritten(each) for each in predicates]
        exact = [exact_filter([each], fields.schema) for each in rewritten]
        return cls(
            bind_filter(pruning_filter(rewritten, fields.schema), fields.schema),
            tuple(None if each is None else bind_filter(each, fields.schema) for each in exact),
            fields.indexes,
        )

    def answer(self, bound: BoundFilter, partition: tuple[Any, ...]) -> BoundFilter:
        """TRUE or FALSE if the partition decides the filter."""

        def decide_leaf(leaf: Comparison) -> BoundFilter:
            value = partition[self.indexes[leaf.field.field_id]]
            return decide(leaf, partition_value_statistics(value))

        return residual(bound, decide_leaf)


def _says_what_spark_computes(field: PartitionField, source: IcebergType, metadata: TableMetadata) -> bool:
    """Whether the field has the values of Spark's function with the same name, for files of any age."""
    transform: Transform[Any, Any] = field.transform
    if not isinstance(transform, IdentityTransform) and not isinstance(source, _AS_IN_SPARK):
        return False
    if isinstance(transform, TruncateTransform) and isinstance(source, LongType):
        # In files from before the column was a long, truncating the lowest integers overflowed.
        was_integer = any(
            isinstance(schema.find_type(field.source_id), IntegerType)
            for schema in metadata.schemas
            if schema.find_column_name(field.source_id) is not None
        )
        return not was_integer or _LOWEST_INTEGER % transform.width == 0
    return not isinstance(transform, BucketTransform) or transform.num_buckets > 0


def _calls_transform(expression: SparkExpression) -> bool:
    return "transform" in expression or any(map(_calls_transform, expression.get("arguments", ())))
