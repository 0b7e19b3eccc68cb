"""Flink writes a stream of upserts and deletes, while jobs of this library run and others read."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from duckdb_iceberg_env import is_complete
from flink_stream import KEY, Flink, Row, clock_of, create, flink_process, state_at
from matrix import FLINK_JOBS, FLINK_READERS, Matrix
from other_readers import ask_duckdb
from servers import BUCKET, moto, rest_server

import tableformat as tf
from spark_ext import attach
from tableformat.commit.table_diff import live_files, manifests_of_snapshot
from tableformat.metadata.content_file import PUFFIN
from tableformat.metadata.manifests.manifest_entry import ManifestContent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.estate,
    pytest.mark.filterwarnings("ignore:Iceberg scan planning:polars.exceptions.PerformanceWarning"),
]

TABLES: Final = {"db.t2": ("2", False), "db.t2p": ("2", True), "db.t3": ("3", False), "db.t3p": ("3", True)}
"""Version and partitioning."""
ROUNDS: Final = 1
"""How often each job runs on each table."""
RATE: Final = 200
"""Numbers of the stream a second."""
PUBLISHED: Final = "published"
"""The branch for readers that reject equality deletes."""
JOBS: Final[Mapping[str, Callable[[tf.Table], Any]]] = {
    "convert_deletes": lambda table: table.maintenance.convert_deletes(),
    "publish": lambda table: table.maintenance.publish(source="main", target=PUBLISHED),
    "compact": lambda table: table.maintenance.compact(delete_file_threshold=1),
    "expire_snapshots": lambda table: table.maintenance.expire_snapshots(older_than="2100-01-01", retain_last=2),
}


@pytest.fixture
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flink]:
    """A process for one test: its environment forgets no setting, and threads of the AWS client keep the class loader
    of a job that has ended."""
    with flink_process(tmp_path_factory.mktemp("flink")) as process:
        yield process


@dataclass(frozen=True, slots=True)
class Estate:
    """A catalog that Flink has open, too."""

    catalog: tf.Catalog
    spark: SparkSession
    """A session in which the catalog is named `estate`."""
    kind: str
    matrix: Matrix

    def seen(self, section: str, row: str, table: tf.Table) -> None:
        version, is_partitioned = TABLES[table.name]
        self.matrix.seen(section, row, f"{self.kind} v{version}{' p' if is_partitioned else ''}")


@pytest.fixture(params=["lake", "rest"])
def estate(
    request: pytest.FixtureRequest, flink: Flink, spark: SparkSession, matrix: Matrix, tmp_path: Path
) -> Iterator[Estate]:
    """The files of `rest` are in S3, and only its server knows how to open them."""
    session = spark.newSession()
    if request.param == "lake":
        with tf.open_catalog(str(tmp_path / "lake")) as catalog:
            flink.open(lake_options(tmp_path / "lake"))
            yield Estate(catalog, attach(session, catalog="estate", warehouse=tmp_path / "lake"), "lake", matrix)
        return
    with (
        moto() as files,
        rest_server(tmp_path, files, warehouse=f"s3://{BUCKET}/flink") as client,
        tf.open_catalog("rest", **client) as catalog,
    ):
        told = {"uri": client["uri"], "token": client["token"], "io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}
        flink.open({"catalog-type": "rest", **told})
        yield Estate(catalog, attach(session, catalog="estate", **client), "REST, S3", matrix)


def lake_options(lake: Path) -> dict[str, str]:
    """Iceberg's JDBC catalog over the SQLite file of a lake."""
    return {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": f"jdbc:sqlite:{lake}/catalog.db",
        "warehouse": f"file://{lake}",
        "jdbc.schema-version": "V1",
    }


def test_jobs_and_readers_concurrent_with_flink_stream(flink: Flink, estate: Estate) -> None:
    """LK-12: at every snapshot each reader returns the rows of the stream at that time, and Flink continues after each
    job."""
    estate.catalog.create_namespace("db")
    tables = {
        name: create(estate.catalog, name, version=version, partitioned=partitioned)
        for name, (version, partitioned) in TABLES.items()
    }
    job = flink.upsert(list(tables), rate=RATE)
    for table in tables.values():
        wait_for_flink(flink, job, table)
        table.refresh().create_branch(PUBLISHED)
        JOBS["publish"](table)
    for _ in range(ROUNDS):
        for name, table in tables.items():
            for kind, run in JOBS.items():
                if kind == "expire_snapshots" and TABLES[name][0] == "3":
                    continue  # `test_expiry_of_v3_table_stops_flink`
                before = read_by_all(estate, table.refresh())
                run(table)
                assert read_by_all(estate, table.refresh()) >= before, f"{kind} of {name} took the stream back"
                wait_for_flink(flink, job, table)
                estate.seen(FLINK_JOBS, f"`{kind}`", table)
    flink.cancel(job)
    for name, table in tables.items():
        clock = read_by_all(estate, table.refresh())
        assert flink.rows(name) == state_at(clock), "Flink"
        estate.seen(FLINK_READERS, "Flink, in batch mode", table)
        table.maintenance.publish(source="main", target=PUBLISHED)
        assert read_by_all(estate, table.refresh()) == clock
        assert flink.rows(name) == state_at(clock), "Flink, of deletes that were converted"
        estate.seen(FLINK_READERS, "Flink, in batch mode", table)
        assert table.verify(deep=True).errors == ()


def test_flink_job_is_restored_after_compaction_and_expiry(flink: Flink, tmp_path: Path) -> None:
    """LK-12: the snapshot that Flink searches for has expired, and the files that it would commit again are gone."""
    lake = tmp_path / "lake"
    settings = {
        "execution.checkpointing.dir": f"file://{tmp_path}/checkpoints",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    }
    with tf.open_catalog(str(lake)) as catalog:
        catalog.create_namespace("db")
        flink.open(lake_options(lake))
        table = create(catalog, "db.t", version="2", partitioned=True)
        job = flink.upsert(["db.t"], rate=RATE, settings=settings)
        wait_for_flink(flink, job, table)
        wait_for_flink(flink, job, table)
        flink.cancel(job)
        checkpoint = newest_checkpoint(tmp_path / "checkpoints")
        table.refresh().maintenance.compact(rewrite_all=True)
        table.maintenance.expire_snapshots(older_than="2100-01-01")
        assert table.history().num_rows == 1
        clock = clock_of(sorted_rows(table.scan().to_arrow()))
        restored = {**settings, "execution.state-recovery.path": f"file://{checkpoint}"}
        job = flink.upsert(["db.t"], rate=RATE, settings=restored)
        wait_for_flink(flink, job, table)
        flink.cancel(job)
        rows = sorted_rows(table.refresh().scan().to_arrow())
        assert clock_of(rows) > clock
        assert rows == state_at(clock_of(rows))


def test_expiry_of_v3_table_stops_flink(flink: Flink, tmp_path: Path) -> None:
    """LK-13: a bug of Iceberg 1.11. If this test fails, remove the warning, and expire snapshots of all tables in the
    other test."""
    with tf.open_catalog(str(tmp_path / "lake")) as catalog:
        catalog.create_namespace("db")
        flink.open(lake_options(tmp_path / "lake"))
        table = create(catalog, "db.t", version="3", partitioned=False)
        job = flink.upsert(["db.t"], rate=RATE)
        wait_for_flink(flink, job, table)
        wait_for_flink(flink, job, table)
        with pytest.warns(tf.errors.ForeignWriterWarning, match="fails at a checkpoint"):
            table.refresh().maintenance.expire_snapshots(older_than="2100-01-01")
        with pytest.raises(AssertionError, match="Cannot determine history between starting snapshot null"):
            wait_for_flink(flink, job, table)
        rows = sorted_rows(table.refresh().scan().to_arrow())
        assert rows == state_at(clock_of(rows))


def newest_checkpoint(directory: Path) -> Path:
    """The newest complete checkpoint; earlier ones are removed when it is complete."""
    complete = [file.parent for file in directory.glob("*/chk-*/_metadata")]
    return max(complete, key=lambda path: int(path.name.removeprefix("chk-")))


def wait_for_flink(flink: Flink, job: int, table: tf.Table) -> None:
    """Wait until Flink has committed once more. Raises if the job has failed."""
    before = checkpoint_of(table.refresh())
    deadline = time.monotonic() + 300
    while checkpoint_of(table.refresh()) == before:
        assert flink.is_running(job)
        assert time.monotonic() < deadline, "Flink commits nothing"
        time.sleep(0.3)


def checkpoint_of(table: tf.Table) -> str | None:
    head = table.iceberg.current_snapshot()
    if head is None or head.summary is None:
        return None
    return head.summary.additional_properties["flink.max-committed-checkpoint-id"]


def read_by_all(estate: Estate, table: tf.Table) -> int:
    """The clock of the head of `main`; each reader's rows are held against the state at the clock it found."""
    head = table.iceberg.current_snapshot()
    assert head is not None
    rows = sorted_rows(table.scan().to_arrow())
    clock = clock_of(rows)
    assert rows == state_at(clock), f"snapshot {head.snapshot_id}"
    estate.seen(FLINK_READERS, "this library", table)
    published = table.iceberg.refs()[PUBLISHED].snapshot_id
    of_iceberg = sorted_rows(table.iceberg.scan(snapshot_id=published).to_arrow())
    assert of_iceberg == state_at(clock_of(of_iceberg)), f"PyIceberg, snapshot {published}"
    assert of_iceberg == sorted_rows(table.scan(branch=PUBLISHED).to_arrow())
    estate.seen(FLINK_READERS, "this library", table)
    estate.seen(FLINK_READERS, "PyIceberg, of the published branch", table)
    with duckdb.connect() as connection:
        tf.duckdb.attach(connection, estate.catalog, snapshot_id=head.snapshot_id)
        found = connection.sql(f"SELECT id1, id2, n FROM lake.{table.name}").fetchall()
        assert sorted(found) == rows, "DuckDB, by this library"
    estate.seen(FLINK_READERS, "DuckDB, `tf.duckdb.attach`", table)
    query = f"SELECT id1, id2, n FROM estate.{table.name} VERSION AS OF {{}}"
    for snapshot_id, expected in ((head.snapshot_id, rows), (published, of_iceberg)):
        found = estate.spark.sql(query.format(snapshot_id)).collect()
        assert sorted(map(tuple, found)) == expected, f"Spark, snapshot {snapshot_id}"
        estate.seen(FLINK_READERS, "Spark", table)
    polars = pl.scan_iceberg(table.iceberg, snapshot_id=published, storage_options=options_of_polars(table) or None)
    assert sorted(polars.select("id1", "id2", "n").collect().rows()) == of_iceberg, "Polars"
    estate.seen(FLINK_READERS, "Polars, of the published branch", table)
    location = table.iceberg.metadata_location
    if location.startswith("file:") and is_complete() and not has_shared_vectors(table, published):
        answer = ask_duckdb(location, published, {"rows": "SELECT id1, id2, n FROM {table}"})["rows"]
        assert sorted(answer.rows or []) == of_iceberg, f"DuckDB's extension: {answer.error}"
        estate.seen(FLINK_READERS, "DuckDB's extension, of the published branch", table)
    return clock


def has_shared_vectors(table: tf.Table, snapshot_id: int) -> bool:
    """Whether a file of Flink has several deletion vectors: DuckDB's extension 1.5.5 takes a large one for a small one
    behind it (the corpus: "a small deletion vector behind a large one in the same file")."""
    manifests = manifests_of_snapshot(table.iceberg.io, table.iceberg.snapshot_by_id(snapshot_id))
    deletes = live_files(table.iceberg.io, table.iceberg.metadata, manifests, ManifestContent.DELETES)
    counts = Counter(delete.file_path for delete in deletes if delete.file_format == PUFFIN)
    return any(count > 1 and not path.endswith(".puffin") for path, count in counts.items())


def options_of_polars(table: tf.Table) -> dict[str, str]:
    """Its own reader knows nothing of the options of PyIceberg's files."""
    files = table.iceberg.io.properties
    if "s3.endpoint" not in files:
        return {}
    return {
        "aws_endpoint_url": files["s3.endpoint"],
        "aws_access_key_id": files["s3.access-key-id"],
        "aws_secret_access_key": files["s3.secret-access-key"],
        "aws_region": files["s3.region"],
        "aws_allow_http": "true",
    }


def sorted_rows(table: pa.Table) -> list[Row]:
    return sorted(zip(*(table[name].to_pylist() for name in (*KEY, "n")), strict=True))
