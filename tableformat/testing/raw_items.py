"""The entries of a "raw" step: hand-made files, as described in `docs/reference/corpus.md`.

{"data": rows, "as": name}                       rows in this order, no sort marker; `name` names the file too
{"again": name}                                  the same data file again, like a retry of its commit
{"equality": rows, "by": [columns]}              further columns of the rows are not delete columns
{"positions": {name: [0, 3]}}                    one delete file; a name is a data file's, or a path
{"vectors": {name: [0, 3]}}                      a Puffin file with a vector for each data file, in this order
{"ranges": [[lower, upper]], "on": [columns]}    or {"prefixes": [values], "on": ...}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pyiceberg.schema import Schema

from tableformat.deletes.rules import is_unpartitioned
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.table import Table
from tableformat.testing.json_values import rows_from_json, tuple_from_json, value_from_json
from tableformat.testing.raw_files import (
    foreign_data_file,
    foreign_equality_delete,
    foreign_position_delete,
    foreign_vectors,
    raw_range_delete,
)
from tableformat.write.context import WriteContext

_KINDS: Final = ("data", "again", "equality", "positions", "vectors", "ranges", "prefixes")


class RawItems:
    """The files of one raw commit, and the files of earlier steps that its position deletes may name."""

    def __init__(self, table: Table, known: dict[str, list[DataFile]]) -> None:
        self._table = table
        self._known = known
        self._context = WriteContext.of(table.metadata, table.iceberg.io)
        self.data_files: list[DataFile] = []
        self.delete_files: list[DeleteFile] = []

    def add(self, item: Mapping[str, Any]) -> None:
        """Write the file of one item."""
        kind = next((name for name in _KINDS if name in item), None)
        match kind:
            case "data":
                self._add_data(item)
            case "again":
                (data,) = self._known[item["again"]]
                self.data_files.append(
                    replace(data, sequence_number=None, file_sequence_number=None, first_row_id=None)
                )
            case "equality":
                self.delete_files.append(self._equality(item))
            case "positions":
                self.delete_files.append(self._positions(item))
            case "vectors":
                deleted = {self._known[name][0]: positions for name, positions in item["vectors"].items()}
                self.delete_files += foreign_vectors(self._context, deleted)
            case "ranges" | "prefixes":
                self.delete_files.append(self._ranges(item))
            case _:
                raise InvalidArgumentError(f"a raw item is one of {', '.join(_KINDS)}: {dict(item)}.")

    def _schema(self, item: Mapping[str, Any]) -> Schema:
        """The table's current schema, or an older one named by the item."""
        if "schema_id" not in item:
            return self._table.metadata.schema()
        return next(schema for schema in self._table.metadata.schemas if schema.schema_id == item["schema_id"])

    def _add_data(self, item: Mapping[str, Any]) -> None:
        schema = self._schema(item)
        columns = item.get("columns", [field.name for field in schema.fields])
        spec_id = item.get("spec_id", self._context.spec.spec_id)
        data = foreign_data_file(
            self._context,
            rows_from_json(item["data"], schema, columns),
            schema,
            columns=columns,
            spec_id=spec_id,
            partition=self._partition(item, spec_id),
            has_field_ids=item.get("field_ids", True),
            has_metrics=item.get("metrics", True),
            sequence_number=item.get("sequence_number"),
            name=item.get("as"),
        )
        self.data_files.append(data)
        if "as" in item:
            self._known[item["as"]] = [data]

    def _equality(self, item: Mapping[str, Any]) -> DeleteFile:
        schema = self._schema(item)
        spec_id = item.get("spec_id", self._global_spec_id())
        return foreign_equality_delete(
            self._context,
            rows_from_json(item["equality"], schema, item.get("columns", item["by"])),
            schema,
            equality_columns=item["by"],
            spec_id=spec_id,
            partition=self._partition(item, spec_id),
            has_metrics=item.get("metrics", True),
            sequence_number=item.get("sequence_number"),
        )

    def _positions(self, item: Mapping[str, Any]) -> DeleteFile:
        pairs: list[tuple[str, int]] = []
        files: list[DataFile] = []
        for name, altered in item.get("altered_paths", {}).items():
            (data,) = self._known[name]
            pairs += [(data.file_path.replace("/data/", "/data//"), position) for position in altered]
            files.append(data)
        for name, positions in item["positions"].items():
            if name in self._known:
                (data,) = self._known[name]
                files.append(data)
                pairs += [(data.file_path, position) for position in positions]
            else:
                pairs += [(name.replace("{location}", self._table.location), position) for position in positions]
        return foreign_position_delete(
            self._context,
            pairs,
            self._known[item["in_partition_of"]][0] if "in_partition_of" in item else files[0],
            names_file=item.get("names_file", False),
            has_metrics=item.get("metrics", True),
            sequence_number=item.get("sequence_number"),
        )

    def _ranges(self, item: Mapping[str, Any]) -> DeleteFile:
        schema, on = self._schema(item), item.get("on", self._table.key)
        spec_id = item.get("spec_id", self._global_spec_id())
        spans: list[Any] = [
            tuple(tuple_from_json(bound, schema, on) for bound in span) for span in item.get("ranges", ())
        ]
        spans += [tuple_from_json(prefix, schema, on) for prefix in item.get("prefixes", ())]
        return raw_range_delete(
            self._context,
            schema,
            on,
            spans,
            spec_id=spec_id,
            partition=self._partition(item, spec_id),
            sequence_numbers=item.get("sequence_numbers"),
        )

    def _partition(self, item: Mapping[str, Any], spec_id: int) -> tuple[Any, ...]:
        """Partition values of the item in Iceberg's internal form: whole numbers and text."""
        spec = self._context.spec_of(spec_id)
        values: Sequence[Any] = item.get("partition", ())
        if is_unpartitioned(spec) and not values:
            return (None,) * len(spec.fields)
        partition_type = spec.partition_type(self._table.metadata.schema())
        return tuple(
            value_from_json(value, field.field_type) for value, field in zip(values, partition_type.fields, strict=True)
        )

    def _global_spec_id(self) -> int:
        specs = self._table.metadata.specs()
        return next(spec_id for spec_id, spec in specs.items() if is_unpartitioned(spec))
