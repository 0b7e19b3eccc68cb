"""Column names in SQL text for DuckDB, for tables in which DuckDB would read another column.

DuckDB does not distinguish `id` from `Id`. If a table has both, its columns get the names `__column_0`, `__column_1`,
... while an expression runs, and the text is translated to these names. For all other tables, names and texts stay
unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from tableformat.cached_property import cached_property
from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.metadata.alike_names import are_alike, folded, has_alike_fields


@dataclass(frozen=True)
class SqlColumns:
    """The columns that SQL text can name, by the alias of their table."""

    sides: Mapping[str, pa.Schema]

    @cached_property
    def is_renamed(self) -> bool:
        """Whether DuckDB could confuse one column, or field of a struct, with another."""
        return any(
            are_alike(schema.names) or any(has_alike_fields(field.type) for field in schema)
            for schema in self.sides.values()
        )

    def internal(self, alias: str, names: Sequence[str]) -> list[str]:
        """The names of the columns of one side while an expression runs. Names of other columns stay unchanged."""
        if not self.is_renamed:
            return list(names)
        places = {name: place for place, name in enumerate(self.sides[alias].names)}
        return [f"__column_{places[name]}" if name in places else name for name in names]

    def translated(self, expression: exp.Expr, *, where: str, of: str | None = None) -> exp.Expr:
        """The expression over the internal names. `where` is the argument for errors. `of` is the alias of the only
        table whose columns can be named without an alias.

        Raises InvalidArgumentError for a name that could mean several columns, UnsupportedFeatureError for a struct
        whose fields DuckDB cannot distinguish.
        """
        if not self.is_renamed:
            return expression
        if expression.find(exp.Comprehension):
            raise UnsupportedFeatureError(
                f"{where} has a list comprehension, whose variable cannot be distinguished from a column if column "
                "names differ only in case. Nothing was changed. Write list_transform(list, lambda element: ...)."
            )
        bare = self.sides if of is None else {of: self.sides[of]}
        return expression.transform(
            lambda node: self._column(node, bare, where) if isinstance(node, exp.Column) else node
        )

    def _column(self, node: exp.Column, bare: Mapping[str, pa.Schema], where: str) -> exp.Expr:
        parts = [part.name for part in node.parts]
        alias = next((each for each in self.sides if each.lower() == parts[0].lower()), None) if parts[1:] else None
        found = None if alias is None else self._found({alias: self.sides[alias]}, parts[1], where)
        rest = node.parts[2:]
        if found is None:
            found = self._found(bare, parts[0], where)
            rest = node.parts[1:]
        if found is None:
            return node  # DuckDB reports a missing column: no internal name is like it.
        alias, name = found
        if has_alike_fields(self.sides[alias].field(name).type):
            raise UnsupportedFeatureError(
                f"{where} uses column {name!r}, in which names of struct fields differ only in case. DuckDB, which "
                "evaluates the expression, does not distinguish them. Nothing was changed. Rename one of the fields, "
                "or compute the values in Python and upsert them."
            )
        (internal,) = self.internal(alias, [name])
        column = exp.column(internal, table=exp.to_identifier(alias, quoted=True), quoted=True)
        return exp.Dot.build([column, *(part.copy() for part in rest)]) if rest else column

    def _found(self, sides: Mapping[str, pa.Schema], name: str, where: str) -> tuple[str, str] | None:
        """The alias and the column that the name means, or None."""
        found = [
            (alias, each)
            for alias, schema in sides.items()
            if (each := column_named(name, schema.names, where=where)) is not None
        ]
        if len(found) > 1:
            told = " and ".join(f"{alias}.{each}" for alias, each in found)
            raise InvalidArgumentError(f"{where}: {name!r} is ambiguous: it could be {told}. Write the full name.")
        return found[0] if found else None


def column_named(name: str, names: Sequence[str], *, where: str) -> str | None:
    """The column as it is spelled in the table: the column with exactly this name, otherwise the only one that differs
    only in case.

    Raises InvalidArgumentError if several columns differ only in case; None if the name matches no column.
    """
    if name in names:
        return name
    alike = [each for each in names if folded(each) == folded(name)]
    if len(alike) > 1:
        told = " or ".join(f'"{each}"' for each in alike)
        raise InvalidArgumentError(
            f"{where}: {name!r} is ambiguous: it could be {told}, which differ only in case. Write the name exactly."
        )
    return alike[0] if alike else None
