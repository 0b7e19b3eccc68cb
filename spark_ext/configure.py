"""Configures a Spark session with the catalog."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final, TypeVar

from spark_ext.jar import JarError, catalog_jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    AnySession = TypeVar("AnySession", SparkSession, ConnectSession)

CATALOG_CLASS: Final = "tableformat.spark.LakeCatalog"
_JARS: Final = "spark.jars"
SQL_EXTENSIONS: Final = "spark.sql.extensions"
SQL_EXTENSION_CLASS: Final = "tableformat.spark.SqlExtensions"
"""Statements that Spark's grammar lacks (docs/reference/spark-sql.md)."""


def configure(
    builder: SparkSession.Builder,
    catalog: str = "lake",
    warehouse: str | os.PathLike[str] | None = None,
    **options: str,
) -> SparkSession.Builder:
    """Add a catalog to a session that is about to be built.

    `catalog` is its name in SQL. `warehouse` is a directory, which is created if necessary, or a location in an object
    store. Without it, `catalog` is the name of a catalog in PyIceberg's configuration. `options` are passed to
    `tableformat.open_catalog`, with these exceptions: `upkeep-executor-bytes` runs large merges of maintenance on
    executors, `copy-on-write-executor-bytes` and `scan-executor-bytes` do the same for copy-on-write and for scans of
    procedures, and `delete-mode` is how DELETE finds its rows.

    Raises spark_ext.jar.JarError if the Java part does not exist and cannot be compiled. The same error is raised if
    this process already runs Spark without it, because Java loads jars only when it starts. Use `attach` in that case.

    Jars and SQL extensions that are already set in the builder are kept.
    """
    _refuse_running_java_without_jar(catalog)
    for name, value in catalog_options(catalog, warehouse, **options).items():
        builder = builder.config(name, value)
    known: dict[str, str] = getattr(builder, "_options", {})
    builder = builder.config(SQL_EXTENSIONS, _with(known.get(SQL_EXTENSIONS, ""), SQL_EXTENSION_CLASS))
    return builder.config(_JARS, _with(known.get(_JARS, ""), str(catalog_jar())))


def attach(
    spark: AnySession, catalog: str = "lake", warehouse: str | os.PathLike[str] | None = None, **options: str
) -> AnySession:
    """Add a catalog to a running session, classic or Connect. Takes the arguments of `configure`.

    The jar matches the running Spark, which may have a different version than the installed one. Spark loads SQL
    extensions only when a session starts, so the statements of docs/reference/spark-sql.md are not added.
    """
    jar = str(catalog_jar(spark.version)).replace("\\", "\\\\").replace("'", "\\'")
    spark.sql(f"ADD JAR '{jar}'")
    for name, value in catalog_options(catalog, warehouse, **options).items():
        spark.conf.set(name, value)
    return spark


def catalog_options(catalog: str, warehouse: str | os.PathLike[str] | None = None, **options: str) -> dict[str, str]:
    """The Spark configuration of a catalog, without the jar."""
    prefix = f"spark.sql.catalog.{catalog}"
    configuration = {prefix: CATALOG_CLASS, f"{prefix}.python": sys.executable}
    if warehouse is not None:
        configuration[f"{prefix}.warehouse"] = _absolute(os.fspath(warehouse))
    configuration |= {f"{prefix}.{name}": str(value) for name, value in options.items()}
    return configuration


def _refuse_running_java_without_jar(catalog: str) -> None:
    """Raise JarError if Spark runs in this process without the jar. A Java process outlives its sessions, so it may
    exist without one."""
    context = sys.modules.get("pyspark.core.context") or sys.modules.get("pyspark.context")
    java = getattr(context, "SparkContext", None) and context.SparkContext._jvm  # type: ignore[union-attr]
    if java and not java.org.apache.spark.util.Utils.classIsLoadable(CATALOG_CLASS):
        raise JarError(
            "Spark already runs in this process and was started without the jar of the catalog, which can only be "
            "added at the start. Add the catalog to the session instead: spark_ext.attach(spark, "
            f"catalog={catalog!r}, warehouse=...)."
        )


def _with(listed: str, name: str) -> str:
    """A comma-separated list with the name at its end, because the parser of the last extension is asked first."""
    known = [each for each in listed.split(",") if each]
    return ",".join(known if name in known else [*known, name])


def _absolute(warehouse: str) -> str:
    """The absolute path, because the process that opens a relative directory may have another working directory. A URI
    is returned unchanged."""
    is_uri = "://" in warehouse or warehouse[:5].lower() == "file:"
    return warehouse if is_uri else os.path.abspath(os.path.expanduser(warehouse))
