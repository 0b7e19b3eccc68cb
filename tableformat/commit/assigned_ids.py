"""Assigns the ids of schemas, partition specs and sort orders that a commit adds, by the rules of Iceberg.

    add-schema {id 0, columns a b}, set-current-schema -1        the table has schema 0 {a}
    add-schema {id 1, columns a b}, set-current-schema 1         as applied

PyIceberg 0.12 adds each of them with the id that the client chose, and takes the greatest id for -1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSortOrderUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    TableUpdate,
)

from tableformat.errors import InvalidArgumentError

_LAST_ADDED = -1


def with_assigned_ids(metadata: TableMetadata, updates: Sequence[TableUpdate]) -> tuple[TableUpdate, ...]:
    """CP-92: the updates with ids as they are applied.

    If the table already has an equal schema, spec or order, the update is left out and the existing id is used.
    Otherwise the new object keeps its id if the id is free, and gets the next free id if not. Later updates may refer
    to the new object by -1 or by the id in the request. Raises InvalidArgumentError for -1 without a new object.
    """
    return tuple(_assigned(metadata, updates))


def _assigned(metadata: TableMetadata, updates: Sequence[TableUpdate]) -> Iterator[TableUpdate]:
    schemas, specs, orders = list(metadata.schemas), list(metadata.partition_specs), list(metadata.sort_orders)
    schema_ids: dict[int, int] = {}
    spec_ids: dict[int, int] = {}
    order_ids: dict[int, int] = {}
    for update in updates:
        match update:
            case AddSchemaUpdate(schema_=schema):
                schema_id = _schema_id(schema, schemas)
                schema_ids |= {schema.schema_id: schema_id, _LAST_ADDED: schema_id}
                if schema_id not in {each.schema_id for each in schemas}:
                    schemas.append(schema.model_copy(update={"schema_id": schema_id}))
                    yield update.model_copy(update={"schema_": schemas[-1]})
            case SetCurrentSchemaUpdate(schema_id=wanted):
                yield update.model_copy(update={"schema_id": _meant(wanted, schema_ids, "schema")})
            case AddPartitionSpecUpdate(spec=spec):
                spec_id = _spec_id(spec, specs)
                spec_ids |= {spec.spec_id: spec_id, _LAST_ADDED: spec_id}
                if spec_id not in {each.spec_id for each in specs}:
                    specs.append(PartitionSpec(*spec.fields, spec_id=spec_id))
                    yield update.model_copy(update={"spec": specs[-1]})
            case SetDefaultSpecUpdate(spec_id=wanted):
                yield update.model_copy(update={"spec_id": _meant(wanted, spec_ids, "partition spec")})
            case AddSortOrderUpdate(sort_order=order):
                order_id = _order_id(order, orders)
                order_ids |= {order.order_id: order_id, _LAST_ADDED: order_id}
                if order_id not in {each.order_id for each in orders}:
                    orders.append(SortOrder(*order.fields, order_id=order_id))
                    yield update.model_copy(update={"sort_order": orders[-1]})
            case SetDefaultSortOrderUpdate(sort_order_id=wanted):
                yield update.model_copy(update={"sort_order_id": _meant(wanted, order_ids, "sort order")})
            case _:
                yield update


def _schema_id(schema: Schema, known: Sequence[Schema]) -> int:
    for each in known:
        if each.as_struct() == schema.as_struct() and set(each.identifier_field_ids) == set(
            schema.identifier_field_ids
        ):
            return each.schema_id
    return _free(schema.schema_id, [each.schema_id for each in known], first=0)


def _spec_id(spec: PartitionSpec, known: Sequence[PartitionSpec]) -> int:
    for each in known:
        if each.compatible_with(spec):
            return each.spec_id
    return _free(spec.spec_id, [each.spec_id for each in known], first=0)


def _order_id(order: SortOrder, known: Sequence[SortOrder]) -> int:
    if order.is_unsorted:
        return UNSORTED_SORT_ORDER.order_id
    for each in known:
        if each.fields == order.fields:
            return each.order_id
    return _free(order.order_id, [UNSORTED_SORT_ORDER.order_id, *(each.order_id for each in known)], first=1)


def _free(wanted: int, taken: Sequence[int], *, first: int) -> int:
    return wanted if wanted >= first and wanted not in taken else max([first - 1, *taken]) + 1


def _meant(wanted: int, added: Mapping[int, int], kind: str) -> int:
    if wanted == _LAST_ADDED and _LAST_ADDED not in added:
        raise InvalidArgumentError(f"-1 means the last added {kind}, but the commit adds no {kind} before it.")
    return added.get(wanted, wanted)
