"""The jar, and the ways to configure the catalog in Spark."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from spark_ext import attach
from spark_ext.__main__ import main
from spark_ext.jar import (
    JarError,
    SparkVersion,
    catalog_jar,
    compile_jar,
    find_compiler,
    source_roots,
    spark_jars,
    spark_version,
)
from tableformat import open_catalog

_SCRIPT_SECONDS = 180


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with a run-time Java only, and an empty cache."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.long
def test_jar_build_is_reproducible(java: None, tmp_path: Path) -> None:
    if find_compiler() is None:
        pytest.skip("no Java compiler was found")
    made = compile_jar(tmp_path / "again" / "catalog.jar", spark_jars())
    assert made.read_bytes() == catalog_jar().read_bytes()


def test_missing_compiler_error_names_the_package(no_compiler: None) -> None:
    with pytest.raises(JarError, match="openjdk-17-jdk-headless") as caught:
        catalog_jar()
    assert spark_version(spark_jars()).version in str(caught.value)


def test_packaged_jar_does_not_need_a_compiler(
    no_compiler: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packaged = tmp_path / spark_version(spark_jars()).jar_name
    packaged.write_bytes(b"")
    monkeypatch.setattr("spark_ext.jar.PACKAGED_JARS", tmp_path)
    assert catalog_jar() == packaged


def test_packaged_jar_supports_one_minor_version() -> None:
    one, other = SparkVersion("4.3.0", "2.13"), SparkVersion("4.3.7", "2.13")
    assert one.jar_name == other.jar_name == "tableformat-spark-4.3_2.13.jar"
    assert SparkVersion("4.4.0", "2.13").jar_name != one.jar_name
    assert SparkVersion("3.5.7", "2.12").jar_name == "tableformat-spark-3.5_2.12.jar"


def test_jar_for_a_spark_version_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Connect server's, or a cluster's."""
    monkeypatch.setattr("spark_ext.jar.PACKAGED_JARS", tmp_path)
    with pytest.raises(JarError, match=r"Install pyspark==4\.9\.\*"):
        catalog_jar("4.9.1")
    (tmp_path / "tableformat-spark-4.9_2.13.jar").write_bytes(b"")
    assert catalog_jar("4.9.1").name == "tableformat-spark-4.9_2.13.jar"
    with pytest.raises(SystemExit):
        main(["--spark", "5.0"])


def test_jar_contains_each_class_once() -> None:
    """For each class that Spark changed, one version is in `since` and the other in `before`; no Spark version gets
    both."""
    for version, scala in (("3.5", "2.12"), ("4.0", "2.13"), ("4.1", "2.13"), ("4.2", "2.13"), ("4.3", "2.13")):
        roots = source_roots(SparkVersion(version, scala))
        classes = [source.name for root in roots for source in root.rglob("*.java")]
        assert sorted(set(classes)) == sorted(classes), version
        assert {"src", f"scala-{scala}"} < {root.name for root in roots}


def test_command_line_options(java: None, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--catalog", "shop", "--warehouse", str(tmp_path / "a b"), "--option", "s3.region=eu"]) == 0
    words = shlex.split(capsys.readouterr().out)
    assert words[:2] == ["--jars", str(catalog_jar())]
    assert words[2:] == [
        "--conf",
        "spark.sql.extensions=tableformat.spark.SqlExtensions",
        "--conf",
        "spark.sql.catalog.shop=tableformat.spark.LakeCatalog",
        "--conf",
        f"spark.sql.catalog.shop.python={sys.executable}",
        "--conf",
        f"spark.sql.catalog.shop.warehouse={tmp_path / 'a b'}",
        "--conf",
        "spark.sql.catalog.shop.s3.region=eu",
    ]


def test_attach_to_a_running_session(spark: SparkSession, tmp_path: Path) -> None:
    attach(spark, catalog="other", warehouse=tmp_path / "other")
    spark.sql("CREATE NAMESPACE other.db")
    spark.sql("CREATE TABLE other.db.t (a INT)")
    with open_catalog(str(tmp_path / "other")) as catalog:
        assert catalog.list_tables("db") == ["db.t"]


def test_missing_python_executable_raises_error(spark: SparkSession, tmp_path: Path) -> None:
    attach(spark, catalog="lost", warehouse=tmp_path)
    spark.conf.set("spark.sql.catalog.lost.python", "/nowhere/python")
    with pytest.raises(AnalysisException, match=r"cannot be started.*python") as caught:
        spark.sql("SHOW NAMESPACES IN lost")
    assert caught.value.getCondition() == "TABLEFORMAT_EXTERNAL_ERROR"


def test_python_without_the_library_raises_error(spark: SparkSession, tmp_path: Path) -> None:
    attach(spark, catalog="bare", warehouse=tmp_path)
    spark.conf.set("spark.sql.catalog.bare.python", "/bin/false")
    with pytest.raises(AnalysisException, match=r"option 'python'.*pip install tableformat"):
        spark.sql("SHOW NAMESPACES IN bare")


def test_unknown_catalog_option_raises_error(spark: SparkSession, tmp_path: Path) -> None:
    attach(spark, catalog="typing_mistake", warehouse=tmp_path, catalog_fiel="x")
    with pytest.raises(AnalysisException, match="catalog_file") as caught:
        spark.sql("SHOW NAMESPACES IN typing_mistake")
    assert caught.value.getCondition() == "TABLEFORMAT_UNKNOWN_OPTION"


@pytest.mark.long
def test_spark_sql_shell(java: None, tmp_path: Path) -> None:
    """The shell has no Python process: the catalog starts one."""
    shell = Path(sys.executable).parent / "spark-sql"
    options = subprocess.run(
        [sys.executable, "-m", "spark_ext", "--warehouse", str(tmp_path / "lake")],
        capture_output=True,
        text=True,
        check=True,
    )
    statements = (
        "CREATE NAMESPACE lake.db; CREATE TABLE lake.db.t (a INT); SHOW TABLES IN lake.db; "
        "INSERT INTO lake.db.t VALUES (1), (2); CALL lake.system.delete_range('db.t', array('a'), upper => 2); "
        "SELECT a FROM lake.db.t"
    )
    # The shell script runs Python to find Spark.
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [
            str(shell),
            "--master",
            "local[1]",
            "--conf",
            "spark.ui.enabled=false",
            *shlex.split(options.stdout),
            "-e",
            statements,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
        timeout=_SCRIPT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    first, _snapshot_id, deleted, files, last = done.stdout.split()
    assert (first, deleted, files, last) == ("t", "NULL", "1", "2")


_CONNECT_SCRIPT = """
import sys
from pyspark.sql import SparkSession
from pyspark.errors import AnalysisException
from spark_ext import attach, configure
from spark_ext.jar import catalog_jar
builder = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false")
spark = attach(builder.getOrCreate(), warehouse=sys.argv[1])
spark.sql("CREATE NAMESPACE lake.db")
spark.sql("CREATE TABLE lake.db.t (a INT) TBLPROPERTIES ('tableformat.key' = 'a')")
print(type(spark).__module__, [row.asDict() for row in spark.sql("SHOW TABLES IN lake.db").collect()])
print(spark.table("lake.db.t").count())
try:
    spark.sql("ALTER TABLE lake.db.t DROP COLUMN a")
except AnalysisException as error:
    print(error.getCondition(), error)
rows = spark.createDataFrame([(n,) for n in range(6)], "a int")
rows.writeTo("lake.db.t").append()
spark.sql("DELETE FROM lake.db.t WHERE a = 1")
spark.sql("DELETE FROM lake.db.t WHERE a % 4 = 2")
spark.sql("UPDATE lake.db.t SET a = 50 WHERE a = 5")
spark.sql("MERGE INTO lake.db.t t USING (SELECT explode(array(3, 7)) a) s ON t.a = s.a "
          "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *")
spark.createDataFrame([(4,), (8,)], "a int").writeTo("lake.db.t").option("replace-prefix", "a").append()
print("rows", sorted(row.a for row in spark.table("lake.db.t").collect()))
print("then", spark.sql("SELECT count(*) FROM lake.db.t VERSION AS OF 'main'").collect()[0][0],
      spark.sql("SELECT count(*) FROM lake.db.t.snapshots").collect()[0][0])
try:
    rows.writeTo("lake.db.t").option("replace-prefx", "a").append()
except AnalysisException as error:
    print(error.getCondition(), error)
spark.sql("CREATE TABLE lake.db.r (a INT NOT NULL) "
          "TBLPROPERTIES ('range-partitions.on' = 'a', 'range-partitions.bounds' = '[0, 3)')")
try:
    rows.writeTo("lake.db.r").append()
except Exception as error:
    print(error)
print("covered", spark.table("lake.db.r").count())
spark.sql("CREATE TABLE lake.db.refused (a INT, _refused_reason STRING)")
divert = {"on-refused": "divert", "refused-rows-table": "db.refused"}
rows.writeTo("lake.db.r").options(**divert).append()
print("diverted", sorted(row.a for row in spark.table("lake.db.r").collect()),
      sorted(row.a for row in spark.table("lake.db.refused").collect()))
spark.stop()
"""


_CONNECT_STREAM_SCRIPT = """
import sys
from pyspark.sql import SparkSession
from spark_ext import configure
builder = SparkSession.builder.remote("local[1]")
spark = configure(builder, warehouse=sys.argv[1]).getOrCreate()
spark.sql("CREATE NAMESPACE lake.db")
spark.sql("CREATE TABLE lake.db.t (a INT) TBLPROPERTIES ('tableformat.key' = 'a')")
spark.createDataFrame([(n,) for n in range(6)], "a int").write.parquet(sys.argv[1] + "/../source")
for _ in range(2):
    stream = spark.readStream.schema("a int").parquet(sys.argv[1] + "/../source").writeStream
    stream = stream.option("checkpointLocation", sys.argv[1] + "/../checkpoint").trigger(availableNow=True)
    stream.toTable("lake.db.t").awaitTermination()
print("streamed", spark.table("lake.db.t").count())
spark.sql("CREATE TABLE lake.db.r (a INT NOT NULL) "
          "TBLPROPERTIES ('range-partitions.on' = 'a', 'range-partitions.bounds' = '[0, 3)')")
spark.sql("CREATE TABLE lake.db.refused (a INT, _refused_reason STRING)")

def diverted(**options):
    stream = spark.readStream.schema("a int").parquet(sys.argv[1] + "/../source").selectExpr("coalesce(a, 0) a")
    stream = stream.writeStream.option("checkpointLocation", sys.argv[1] + "/../diverted").options(**options)
    stream.trigger(availableNow=True).toTable("lake.db.r").awaitTermination()

try:
    diverted()
except Exception as error:
    print("refused" if "3 of 6 rows are outside all range partitions of db.r" in str(error) else error)
for _ in range(2):
    diverted(**{"on-refused": "divert", "refused-rows-table": "db.refused"})
print("diverted", sorted(row.a for row in spark.table("lake.db.r").collect()),
      sorted(row.a for row in spark.table("lake.db.refused").collect()))
spark.stop()
"""


def run_connect(script_text: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run a script that starts a Spark Connect server for itself."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")
    script = tmp_path / "script.py"
    script.write_text(script_text)
    return subprocess.run(
        [sys.executable, str(script), str(tmp_path / "lake")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        timeout=_SCRIPT_SECONDS,
    )


@pytest.mark.long
@pytest.mark.since_spark("4.0", "the server of Spark Connect among PySpark's jars")
def test_stream_through_spark_connect(java: None, tmp_path: Path) -> None:
    """The server was started with the jar; one that a session added later is not seen by the tasks of a stream."""
    done = run_connect(_CONNECT_STREAM_SCRIPT, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["streamed 6", "refused", "diverted [0, 1, 2] [3, 4, 5]"], "RP-21, RP-22"


@pytest.mark.slow
@pytest.mark.since_spark("4.0", "the server of Spark Connect among PySpark's jars")
def test_spark_connect(java: None, tmp_path: Path) -> None:
    """RP-21: uncovered rows are rejected there too."""
    done = run_connect(_CONNECT_SCRIPT, tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("pyspark.sql.connect.session [{'namespace': 'db', 'tableName': 't'")
    assert lines[1] == "0"
    assert "TABLEFORMAT_INVALID_ARGUMENT" in done.stdout
    assert "belongs to the key" in done.stdout
    assert "rows [0, 4, 7, 8, 50]" in done.stdout
    assert "then 5 6" in done.stdout
    assert "TABLEFORMAT_UNKNOWN_OPTION" in done.stdout
    assert "3 of 6 rows are outside all range partitions of db.r" in done.stdout, "RP-21"
    assert "covered 0" in done.stdout
    assert "diverted [0, 1, 2] [3, 4, 5]" in done.stdout, "RP-22"
    assert "replace-prefix" in done.stdout


_RUNNING_SCRIPT = """
import sys
from pyspark.sql import SparkSession
from spark_ext import attach, configure
from spark_ext.jar import JarError

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
builder.getOrCreate().stop()
try:
    configure(SparkSession.builder, warehouse=sys.argv[1])
except JarError as error:
    print(error)
spark = attach(builder.getOrCreate(), warehouse=sys.argv[1])
spark.sql("CREATE NAMESPACE lake.db")
print([row.namespace for row in spark.sql("SHOW NAMESPACES IN lake").collect()])
spark.sql("CREATE TABLE lake.db.t AS SELECT 1 a")
before = spark.table("lake.db.t.snapshots").collect()[0].snapshot_id
spark.sql("INSERT INTO lake.db.t VALUES (2)")
try:
    spark.sql(f"SELECT a FROM lake.db.t VERSION AS OF {before}").where("a > 0").writeTo("lake.db.t").append()
except Exception as error:
    print("refused", error)
print("rows", sorted(row.a for row in spark.table("lake.db.t").collect()))
"""


@pytest.mark.long
def test_configure_with_running_spark_suggests_attach(java: None, tmp_path: Path) -> None:
    """Also after the session was stopped: its Java process stays."""
    done = subprocess.run(
        [sys.executable, "-c", _RUNNING_SCRIPT, str(tmp_path / "lake")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        timeout=_SCRIPT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert "spark_ext.attach(spark, catalog='lake'" in done.stdout
    assert "['db']" in done.stdout
    # ST-9: never the current rows. Without the extension, Spark 4.2 and newer drop the version.
    assert "rows [1, 2]" in done.stdout if "refused" in done.stdout else "rows [1, 1, 2]" in done.stdout


_SUBMITTED_SCRIPT = """
import sys
from pyspark.sql import SparkSession
from spark_ext import configure

builder = SparkSession.builder.master("local-cluster[1,1,1024]").config("spark.ui.enabled", "false")
builder = builder.config("spark.jars.packages", "org.tests:extra:1.0").config("spark.log.level", "OFF")
builder = builder.config("spark.jars.repositories", sys.argv[2]).config("spark.jars.ivy", sys.argv[3])
spark = configure(builder, warehouse=sys.argv[1]).getOrCreate()
spark.sql("CREATE NAMESPACE lake.db")
spark.sql("CREATE TABLE lake.db.t AS SELECT id FROM range(3)")
jars = spark._jsc.sc().listJars()
print("jars", sorted(jars.apply(n).rsplit("/", 1)[1] for n in range(jars.size())), spark.table("lake.db.t").count())
"""


@pytest.mark.long
def test_jars_of_packages_are_sent_to_executors(java: None, tmp_path: Path) -> None:
    """The builder's `spark.jars` used to hide the jars that `spark.jars.packages` was resolved to."""
    package = tmp_path / "repository" / "org" / "tests" / "extra" / "1.0"
    package.mkdir(parents=True)
    with zipfile.ZipFile(package / "extra-1.0.jar", "w") as archive:
        archive.writestr("a", "")
    (package / "extra-1.0.pom").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>org.tests</groupId>"
        "<artifactId>extra</artifactId><version>1.0</version></project>"
    )
    lake, repository, ivy = tmp_path / "lake", (tmp_path / "repository").as_uri(), tmp_path / "ivy"
    done = subprocess.run(
        [sys.executable, "-c", _SUBMITTED_SCRIPT, str(lake), repository, str(ivy)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        timeout=_SCRIPT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert "org.tests_extra-1.0.jar" in done.stdout
    assert catalog_jar().name in done.stdout
    assert done.stdout.rstrip().endswith("3")
