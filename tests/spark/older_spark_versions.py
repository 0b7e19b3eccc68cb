"""Replacements for grammar and names that an older Spark does not have."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

_PRIMARY_KEY = re.compile(r",\s*(?:CONSTRAINT \w+ )?PRIMARY KEY\s*\((?P<columns>[^)]*)\)")
_PROPERTIES = re.compile(r"TBLPROPERTIES\s*\(")
_NESTED = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_COLUMNS = re.compile(rf"^(?P<create>\s*(?:CREATE|REPLACE)\b[^(]*{_NESTED})")


def say_keys_by_property() -> None:
    """Spark 4.1 has PRIMARY KEY; earlier versions use the table property instead."""
    sql = SparkSession.sql

    def with_property(self: SparkSession, statement: str, *args: Any, **kwargs: Any) -> DataFrame:
        return sql(self, _with_property(statement), *args, **kwargs)

    SparkSession.sql = with_property  # type: ignore[method-assign]


def _with_property(statement: str) -> str:
    found = _PRIMARY_KEY.search(statement)
    if found is None:
        return statement
    text = statement[: found.start()] + statement[found.end() :]
    key = f"'tableformat.key' = '{found['columns'].replace('`', '')}'"
    if _PROPERTIES.search(text):
        return _PROPERTIES.sub(f"TBLPROPERTIES ({key}, ", text, count=1)
    return _COLUMNS.sub(rf"\g<create> TBLPROPERTIES ({key})", text, count=1)


def name_conditions_of_errors() -> None:
    """PySpark 4.0 calls an error's class its condition."""
    PySparkException.getCondition = lambda error: error.getErrorClass()  # type: ignore[method-assign]


def take_and_give_arrow_tables() -> None:
    """PySpark 4.0 makes data frames of Arrow tables, and these of those."""
    create = SparkSession.createDataFrame

    def of_arrow(self: SparkSession, data: Any, *args: Any, **kwargs: Any) -> DataFrame:
        if not isinstance(data, pa.Table):
            return create(self, data, *args, **kwargs)
        rows = [tuple(row.values()) for row in data.to_pylist()]
        return create(self, rows, from_arrow_schema(data.schema))

    def to_arrow(self: DataFrame) -> pa.Table:
        batches = self._collect_as_arrow()
        return pa.Table.from_batches(batches, None if batches else to_arrow_schema(self.schema))

    SparkSession.createDataFrame = of_arrow  # type: ignore[method-assign]
    DataFrame.toArrow = to_arrow  # type: ignore[method-assign]
