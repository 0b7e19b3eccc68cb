"""`python -m spark_ext --warehouse lake/`: command line options for spark-sql, pyspark and spark-submit.

spark-sql $(python -m spark_ext --warehouse lake/)
"""

from __future__ import annotations

import argparse
import shlex
import sys

from spark_ext.configure import SQL_EXTENSION_CLASS, SQL_EXTENSIONS, catalog_options
from spark_ext.jar import JarError, catalog_jar


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m spark_ext", description="Print --jars and --conf for Spark's commands.")
    parser.add_argument("--catalog", default="lake", help="name of the catalog in SQL (default: lake)")
    parser.add_argument("--warehouse", help="directory or object store location of the tables")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="option of the catalog; may be repeated"
    )
    parser.add_argument("--spark", metavar="VERSION", help="version of the Spark to use")
    parsed = parser.parse_args(arguments)
    for option in parsed.option:
        if "=" not in option:
            parser.error(f"--option {option!r} must look like NAME=VALUE")
    options = dict(option.split("=", 1) for option in parsed.option)
    try:
        jar = catalog_jar(parsed.spark)
    except JarError as error:
        parser.exit(1, f"{error}\n")
    words = ["--jars", str(jar), "--conf", f"{SQL_EXTENSIONS}={SQL_EXTENSION_CLASS}"]
    for name, value in catalog_options(parsed.catalog, parsed.warehouse, **options).items():
        words += ["--conf", f"{name}={value}"]
    sys.stdout.write(f"{shlex.join(words)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
