"""`Maintenance`: the jobs of one table, as `table.maintenance` offers them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Unpack

import pyarrow as pa
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.refs import MAIN_BRANCH

from tableformat.arguments import checked_methods
from tableformat.commit.read_only import refuse_read_only
from tableformat.errors import InvalidArgumentError
from tableformat.filters.predicate import Where
from tableformat.maintenance.apply_retention import ApplyRetentionResult, apply_retention
from tableformat.maintenance.compaction.compact import CompactResult, compact
from tableformat.maintenance.compaction.compaction_choice import plan_compaction
from tableformat.maintenance.compaction.compaction_plan import CompactionKeywords, CompactionOptions, CompactionPlan
from tableformat.maintenance.conversion.convert_deletes import ConvertResult, convert_deletes
from tableformat.maintenance.delete_files.drop_dead_deletes import DropDeadDeletesResult, drop_dead_deletes
from tableformat.maintenance.delete_files.merge_range_deletes import MergeRangeDeletesResult, merge_range_deletes
from tableformat.maintenance.delete_files.rewrite_position_deletes import (
    MIN_INPUT_FILES_DEFAULT,
    RewritePositionDeleteFilesResult,
    rewrite_position_deletes,
)
from tableformat.maintenance.erasure.certificate import ErasureCertificate
from tableformat.maintenance.erasure.erase import erase_from
from tableformat.maintenance.expiry.expire_snapshots import ExpireResult, expire_snapshots
from tableformat.maintenance.expiry.remove_orphan_files import RemoveOrphanFilesResult, remove_orphan_files
from tableformat.maintenance.health.health import TableHealth
from tableformat.maintenance.health.health_findings import health_of
from tableformat.maintenance.publish import PublishResult, publish
from tableformat.maintenance.rewrite_manifests import RewriteManifestsResult, rewrite_manifests
from tableformat.maintenance.run_jobs import RunResult, run_jobs
from tableformat.maintenance.running.executors import LOCAL, Executor
from tableformat.maintenance.running.progress import MAX_COMMITS_DEFAULT, Progress, check_max_commits
from tableformat.maintenance.running.shown_progress import jobs_show_progress
from tableformat.maintenance.statistics.compute_table_stats import ComputeTableStatsResult, compute_table_stats
from tableformat.maintenance.upkeep.background import BACKGROUND
from tableformat.maintenance.upkeep.metrics import UpkeepMetrics, metrics_of
from tableformat.maintenance.upkeep.rounds import UpkeepResult, run_rounds
from tableformat.maintenance.verification.findings import VerifyResult
from tableformat.maintenance.verification.repair import RepairResult, repair
from tableformat.maintenance.verification.verify import verify
from tableformat.metadata.own_handle import calls_on_own_handles
from tableformat.metadata.snapshot_choice import head_view


@checked_methods
@calls_on_own_handles("iceberg")
@jobs_show_progress
@dataclass(frozen=True, slots=True, repr=False)
class Maintenance:
    """Jobs on one table. Only `apply_retention` and `erase` change its rows. Examples begin like those of `Table`.

    >>> result = table.delete_prefix({"id1": "A"})
    >>> table.maintenance.run(only=["convert_deletes"]).is_complete
    True
    """

    iceberg: IcebergTable
    branch: str

    def __repr__(self) -> str:
        return f"Maintenance({'.'.join(self.iceberg.name())!r}, branch={self.branch!r})"

    @property
    def _writable(self) -> IcebergTable:
        """Raises UnsupportedFeatureError for a table that was read from its metadata file, because it is read-only."""
        refuse_read_only(self.iceberg)
        return self.iceberg

    def health(self) -> TableHealth:
        """Report the causes of slow reads of this handle's snapshot, in numbers, with the command for each finding.

        Print the report, or use its `to_dict()`. Reads metadata, range delete files, and the footers of up to 200 data
        files that `add_files` added. Nothing is changed.

        >>> result = table.delete_prefix({"id1": "A"})
        >>> health = table.maintenance.health()
        >>> health.record_count, health.partial_file_count
        (3, 1)
        """
        return health_of(self.iceberg, self.branch)

    def verify(
        self,
        *,
        deep: bool = False,
        keys: bool = False,
        snapshot_id: int | None = None,
        erased: ErasureCertificate | None = None,
        progress: Progress | None = None,
    ) -> VerifyResult:
        """Check whether the table matches its metadata, for all retained snapshots or one. `findings` lists the
        differences, with advice for each. Nothing is changed.

        Reads all manifests, and requests the size of every file from the store. With `deep`, every file is read: rows,
        counts, bounds, order, partitions and checksums, positions, vectors and spans. `is_clean` is true if nothing was
        found that could give a reader wrong results. Caches are not used. With `erased`, the certificate of an
        `erase`, every file is also searched for the erased rows and their traces.

        With `keys`, the keys of all live rows of one snapshot are compared, since a key does not enforce uniqueness.
        Keys of more than one row are one finding; `repeated_key_count` is their number. Memory is about
        `tableformat.write.memory-bytes`. Raises InvalidKeyError for a table without a key.

        >>> result = table.maintenance.verify()
        >>> result.is_clean, result.findings
        (True, ())
        >>> table.maintenance.verify(keys=True).repeated_key_count
        0
        """
        return verify(
            self.iceberg, self.branch, deep=deep, keys=keys, snapshot_id=snapshot_id, erased=erased, progress=progress
        )

    def repair(self, *, dry_run: bool = False, progress: Progress | None = None) -> RepairResult:
        """Remove delete files that match no row from the branch, including missing files. The remaining findings are in
        `left`, with advice for each. No row changes and no file is removed.

        >>> table.maintenance.repair(dry_run=True).left
        ()
        """
        return repair(self._writable, self.branch, dry_run=dry_run, progress=progress)

    def upkeep(
        self, *, executor: Executor = LOCAL, dry_run: bool = False, progress: Progress | None = None
    ) -> tuple[UpkeepResult, ...]:
        """Run the upkeep that the table's writers would run after a commit, within the budgets of its
        `tableformat.upkeep.*` properties. Upkeep merges full levels of small files, converts equality deletes if there
        are many, merges range deletes, and expires snapshots that the table does not retain.

        The result has one item for each round; the last round found nothing to do or used up the budget. Upkeep is
        cheaper than `run` and can be called often. `tableformat.upkeep` = `background` runs it automatically.

        >>> for day in range(16):
        ...     row = {"id1": ["Z"], "id2": [day], "num_cal": [1]}
        ...     result = table.replace(pa.table(row), prefix=["id1", "id2"])
        >>> [each.merged_data_files_count for each in table.maintenance.upkeep()]
        [17, 0]
        """
        return tuple(run_rounds(self._writable, self.branch, executor=executor, dry_run=dry_run, progress=progress))

    @property
    def upkeep_metrics(self) -> UpkeepMetrics:
        """Counters of the upkeep of this table in this process since it started.

        >>> table.maintenance.upkeep_metrics.failure_count
        0
        """
        return metrics_of(self.iceberg.metadata.table_uuid)

    def wait_for_upkeep(self, timeout_seconds: float | None = None) -> bool:
        """Wait until the background upkeep of this process is idle, for all tables; False after the timeout.

        >>> table.maintenance.wait_for_upkeep(timeout_seconds=10)
        True
        """
        return BACKGROUND.wait(timeout_seconds)

    def convert_deletes(
        self,
        *,
        where: Where | None = None,
        only_paths: Collection[str] | None = None,
        partial_progress: bool = True,
        max_commits: int = MAX_COMMITS_DEFAULT,
        executor: Executor = LOCAL,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ConvertResult:
        """Convert equality and range deletes to position deletes, or on version 3 to deletion vectors.

        Iceberg engines read position deletes. Some of them refuse deletion vectors (Trino 476, ClickHouse 26.9, Daft
        0.7.26, icebird 0.3.1): keep tables that they read on version 2.

        With `partial_progress`, a large table is converted in up to `max_commits` snapshots of at least the size of one
        file. A job that is cancelled keeps its commits, and the next run continues from there. `where` limits the job
        to data files that may hold a matching row, `only_paths` to data files at these locations. Deletes that other
        files still need stay.

        With a Spark session as `executor`, its executors read and write, and this process plans and commits. With
        `dry_run`, nothing is written, and the result describes the conversion that would be done. `progress(done,
        total, "data files")` is called for completed data files. Safe with concurrent writers: their commits are
        converted the next time.

        >>> result = table.delete_prefix({"id1": "A"})
        >>> table.maintenance.convert_deletes(dry_run=True).removed_range_delete_files_count
        1
        >>> table.maintenance.convert_deletes().deleted_row_count
        2
        >>> table.iceberg.scan().to_arrow().num_rows  # PyIceberg reads the table.
        1
        """
        check_max_commits(max_commits)
        return convert_deletes(
            self._writable,
            self.branch,
            where=where,
            only_paths=None if only_paths is None else frozenset(only_paths),
            max_commits=max_commits if partial_progress else 1,
            executor=executor,
            dry_run=dry_run,
            progress=progress,
        )

    def apply_retention(self, *, dry_run: bool = False, now: datetime | None = None) -> ApplyRetentionResult:
        """Delete the rows that the table property `tableformat.retain` no longer keeps, without reading them. `run`
        does it too.

        The property has rules such as `ts: 30 days; ts: 7 days where region = 'EU'`. Data files are removed if every
        row is old; otherwise a range delete is written. Rows with a null stay. Ages are counted in whole UTC days, or
        in whole hours if given in hours. `dry_run` reports how many data files and rows each rule affects at most.
        `now` is the current time by default.

        >>> old = pa.table({"id1": ["C"], "id2": [7], "num_cal": [1], "open_on": pa.array([0], pa.date32())})
        >>> result = table.append(old)
        >>> table = table.set_properties({"tableformat.retain": "open_on: 2 years"})
        >>> table.maintenance.apply_retention(dry_run=True).rules[0].row_count_max
        1
        >>> result = table.maintenance.apply_retention()
        >>> table.refresh().scan(where="id1 = 'C'").count()
        0
        """
        return apply_retention(self._writable, self.branch, dry_run=dry_run, now=now)

    def drop_dead_deletes(self, *, dry_run: bool = False, progress: Progress | None = None) -> DropDeadDeletesResult:
        """Remove delete files from the branch that no live data file can match any more. `proofs` has the reason for
        each.

        All kinds are removed, including global ones and leftovers of other writers. Older snapshots keep them. No data
        file is opened. Safe with concurrent writers.

        >>> result = table.delete_prefix({"id1": "Z"})
        >>> table.maintenance.drop_dead_deletes().removed_range_delete_files_count
        1
        """
        return drop_dead_deletes(self._writable, self.branch, dry_run=dry_run, progress=progress)

    def merge_range_deletes(
        self, *, dry_run: bool = False, progress: Progress | None = None
    ) -> MergeRangeDeletesResult:
        """Merge range delete files into one for each scope and list of columns. Spans without effect are dropped.

        Every span keeps its sequence number, so each data file loses the same rows as before. Older snapshots keep the
        separate files. Equality deletes remain unchanged: only conversion removes them. Safe with concurrent writers.

        >>> results = [table.delete_prefix({"id1": id1}) for id1 in ("A", "B")]
        >>> result = table.maintenance.merge_range_deletes()
        >>> result.removed_range_delete_files_count, result.added_range_delete_files_count
        (2, 1)
        """
        return merge_range_deletes(self._writable, self.branch, dry_run=dry_run, progress=progress)

    def rewrite_position_delete_files(
        self,
        *,
        where: Where | None = None,
        only_paths: Collection[str] | None = None,
        min_input_files: int = MIN_INPUT_FILES_DEFAULT,
        rewrite_all: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> RewritePositionDeleteFilesResult:
        """Merge the position deletes of each data file into one file, on v3 tables into its deletion vector.

        The job considers data files that may hold a row that matches `where`, limited to `only_paths`. It rewrites the
        position deletes of such a file if at least `min_input_files` position delete files name it, or if one of them
        names other data files too. With `rewrite_all` it always rewrites them. Row deletes that no longer match a row
        are removed as well. No data file is opened. Safe with concurrent writers.

        >>> results = [table.delete(f"num_cal = {number} AND id1 = 'A'", mode="scan") for number in (1, 2)]
        >>> result = table.maintenance.rewrite_position_delete_files(min_input_files=2)
        >>> result.rewritten_delete_files_count, result.added_delete_files_count
        (2, 1)
        """
        return rewrite_position_deletes(
            self._writable,
            self.branch,
            where=where,
            only_paths=None if only_paths is None else frozenset(only_paths),
            min_input_files=min_input_files,
            rewrite_all=rewrite_all,
            dry_run=dry_run,
            progress=progress,
        )

    def publish(
        self,
        source: str = "ingest",
        target: str = MAIN_BRANCH,
        *,
        executor: Executor = LOCAL,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> PublishResult:
        """Convert the branch `source` and move `target` forward to the converted snapshot.

        Use it for tables that other engines read: writers commit to `source`, and `target` only shows snapshots without
        equality and range deletes. Rows that others appended to `target` in the meantime are first carried over to
        `source`, at their position in the order of commits. Both branches then move in one commit. If `target` has new
        deletes or rewrites, PublishRefusedError names them, and nothing moves.

        Set the table property `tableformat.publish-target.<source>` when you create the branch; publishing sets it too.
        It keeps row deletes and rewrites of this library away from `target`. The conversion uses the `executor`.

        >>> table = table.create_branch("ingest")
        >>> result = catalog.load_table("db.calendars", branch="ingest").delete_prefix({"id1": "A"})
        >>> table.maintenance.publish("ingest").converted_rows_count, table.scan().count()
        (2, 1)
        """
        return publish(self._writable, source, target, executor=executor, dry_run=dry_run, progress=progress)

    def expire_snapshots(
        self,
        *,
        older_than: datetime | timedelta | str | int | None = None,
        retain_last: int | None = None,
        snapshot_ids: Collection[int] = (),
        dry_run: bool = False,
        clean_expired_files: bool = True,
        clean_expired_metadata: bool = False,
        progress: Progress | None = None,
    ) -> ExpireResult:
        """Remove old snapshots of the whole table, and the files that no snapshot, branch or tag needs any more.

        A snapshot expires if it is older than `older_than` and not among the `retain_last` newest of a branch.
        `older_than` is a time or an age such as `timedelta(days=7)` (default: `history.expire.max-snapshot-age-ms`,
        five days). The default of `retain_last` is `history.expire.min-snapshots-to-keep`, one. Settings of a branch
        take precedence over both. Branches and tags past their maximum age expire too, but never `main`.

        `snapshot_ids` are snapshots to expire regardless of their age. If only they are given, nothing else expires.
        With `clean_expired_files=False` every file stays. Files are removed only after a successful commit.
        `clean_expired_metadata` also removes schemas and partition specs that are no longer needed.

        >>> loaded = table.snapshot_id
        >>> result = table.delete_prefix({"id1": "A"})
        >>> table.maintenance.expire_snapshots(snapshot_ids=[loaded]).expired_snapshots_count
        1
        """
        return expire_snapshots(
            self._writable,
            older_than=older_than,
            retain_last=retain_last,
            snapshot_ids=snapshot_ids,
            dry_run=dry_run,
            clean_expired_files=clean_expired_files,
            clean_expired_metadata=clean_expired_metadata,
            progress=progress,
        )

    def plan_compaction(self, **options: Unpack[CompactionKeywords]) -> CompactionPlan:
        """The plan that `compact` would carry out on this handle's snapshot, with groups and reasons. Nothing is
        changed.

        Takes the options of `compact`. Print the plan, or use its `to_arrow()`.

        >>> result = table.append(pa.table({"id1": ["C"], "id2": [7], "num_cal": [1]}))
        >>> plan = table.maintenance.plan_compaction(rewrite_all=True)
        >>> plan.rewritten_data_files_count, plan.row_count
        (2, 4)
        """
        view = head_view(self.iceberg.metadata, self.iceberg.io, self.branch)
        return plan_compaction(view, CompactionOptions.of(view, **options))

    def compact(
        self,
        *,
        dry_run: bool = False,
        partial_progress: bool = True,
        max_commits: int = MAX_COMMITS_DEFAULT,
        executor: Executor = LOCAL,
        only_paths: Collection[str] | None = None,
        drop_dead_deletes: bool = True,
        progress: Progress | None = None,
        **options: Unpack[CompactionKeywords],
    ) -> CompactResult:
        """Rewrite data files if that makes reading cheaper: merge small files, separate overlapping files, and leave
        out deleted rows. The rows do not change, and files stay in their partition and spec.

        depth                      "merge" (default) rewrites all of these; "fold" rewrites only files with many deleted
                                   rows, each by itself
        where                      SQL text or an expression: only files that may hold a matching row
        target_file_size_bytes     default `write.target-file-size-bytes`; files below three quarters of it are small
        min_input_files            number of small files from which they are merged, default 5
        delete_ratio_threshold     share of deleted rows from which a file is rewritten, default 0.3
        delete_file_threshold      pending delete files from which a file is rewritten; by default it is ignored
        max_file_group_size_bytes  bytes of small files that are merged together, default ten target sizes
        max_rewritten_bytes        bytes that all groups read; the groups that save most for each byte come first
        rewrite_all                rewrite every file, regardless of its state
        sort_by                    for a table without a key: columns by which the rewritten rows are sorted, such as
                                   ["a", "b DESC NULLS LAST"]; each group is sorted separately; combine with
                                   rewrite_all to sort every file
        z_order                    instead of sort_by: columns whose bits are interleaved, so that rows near in all of
                                   them are together
        only_paths                 locations of the data files that may be rewritten, among those chosen by the others

        With `partial_progress`, groups are committed in up to `max_commits` snapshots, so a job that is cancelled keeps
        its completed groups. Then one more snapshot drops the delete files of the branch that no longer match a row, as
        the job `drop_dead_deletes` does; `drop_dead_deletes=False` keeps them. After `rewrite_all` without concurrent
        writers, no delete file is left, and every Iceberg engine can read the branch.

        Safe with concurrent writers: a group that conflicts with another commit is planned again, or counted in
        `failed_group_count`. `progress(done, total, "rows")` is called as rows are written. With a Spark session as
        `executor`, its executors rewrite the groups, and this process plans and commits.

        >>> result = table.append(pa.table({"id1": ["C"], "id2": [7], "num_cal": [1]}))
        >>> result = table.maintenance.compact(min_input_files=2)
        >>> result.rewritten_data_files_count, result.added_data_files_count
        (2, 1)
        """
        view = head_view(self.iceberg.metadata, self.iceberg.io, self.branch)
        return compact(
            self._writable,
            self.branch,
            CompactionOptions.of(view, **options),
            partial_progress=partial_progress,
            max_commits=max_commits,
            executor=executor,
            only_paths=None if only_paths is None else frozenset(only_paths),
            drops_dead_deletes=drop_dead_deletes,
            dry_run=dry_run,
            progress=progress,
        )

    def rewrite_manifests(
        self,
        *,
        dry_run: bool = False,
        spec_id: int | None = None,
        sort_by: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> RewriteManifestsResult:
        """Cluster the entries of the branch's manifests by partition, in manifests of
        `commit.manifest.target-size-bytes`, so that filtered scans read few of them. No data or delete file is added or
        removed.

        `spec_id` limits the job to one partition spec. Without it, the manifests of all specs are rewritten; Iceberg
        would use only the current one. `sort_by` names the partition fields that come first in the order, of `spec_id`
        or the current spec.

        >>> result = table.append(pa.table({"id1": ["C"], "id2": [7], "num_cal": [1]}))
        >>> result = table.maintenance.rewrite_manifests()
        >>> result.rewritten_manifests_count, result.added_manifests_count
        (2, 1)
        """
        return rewrite_manifests(
            self._writable, self.branch, spec_id=spec_id, sort_by=sort_by, dry_run=dry_run, progress=progress
        )

    def compute_table_stats(
        self,
        columns: Sequence[str] | None = None,
        *,
        snapshot_id: int | None = None,
        dry_run: bool = False,
        executor: Executor = LOCAL,
        progress: Progress | None = None,
    ) -> ComputeTableStatsResult:
        """Count the distinct values of columns, by default of all primitive columns. The counts are registered in a
        statistics file of the branch's head, or of another snapshot, for the optimizers of Spark and other engines.

        The counts are estimates: exact up to 4096 values, then with a standard error of 1.6 in 100. The columns are
        read in full. Earlier counts of other columns of the snapshot are kept.

        >>> result = table.maintenance.compute_table_stats(["id1", "id2"])
        >>> dict(zip(result.columns, result.distinct_counts))
        {'id1': 2, 'id2': 2}
        """
        return compute_table_stats(
            self._writable,
            self.branch,
            columns,
            snapshot_id=snapshot_id,
            dry_run=dry_run,
            executor=executor,
            progress=progress,
        )

    def erase(
        self,
        prefix: Any = None,
        *,
        where: Where | None = None,
        everywhere: bool = True,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ErasureCertificate:
        """Erase the rows of a key prefix, of several, or of `where` from all snapshots, branches, tags and retired
        ranges, and their values from delete files, bounds, Bloom filters, statistics and metadata. The rest of the
        history stays readable. This cannot be undone, and readers of an earlier state fail. The certificate lists
        what was done, and in `not_reached` what still has the values, and why. With `dry_run` rows are only counted.
        Catalogs other than lakes raise UnsupportedFeatureError.

        >>> plan = table.maintenance.erase({"id1": "A"}, dry_run=True)
        >>> plan.erased_rows_count
        2
        >>> certificate = table.maintenance.erase({"id1": "A"})
        >>> certificate.is_complete, certificate.erased_rows_count
        (True, 2)
        """
        return erase_from(self._writable, prefix, where, everywhere=everywhere, dry_run=dry_run, progress=progress)

    def remove_orphan_files(
        self,
        *,
        older_than: datetime | timedelta | str | int | None = None,
        location: str | None = None,
        dry_run: bool = False,
        allow_recent: bool = False,
        file_list: pa.Table | None = None,
        equal_schemes: Mapping[str, str] | None = None,
        equal_authorities: Mapping[str, str] | None = None,
        prefix_mismatch_mode: str = "error",
        progress: Progress | None = None,
    ) -> RemoveOrphanFilesResult:
        """Remove files in the table's directory that no metadata names, such as leftovers of writers that died.

        Only files in `data` and `metadata` are removed, and in directories of the table's path properties inside its
        location. They must have been last written before `older_than`, a time or an age, by default three days ago:
        younger files may belong to a commit in progress. Less than a day ago needs `allow_recent=True`. `location`
        limits the search to a directory of the table. The job is refused if it could find files of another table.

        `file_list` replaces the listing, for example with an inventory of the store: `file_path` and `last_modified`. A
        file that metadata names with another scheme or authority than the listing is an error, unless `equal_schemes`,
        such as {"wasb,abfs": "abfss"}, or `equal_authorities` declares them equal. `prefix_mismatch_mode` "ignore"
        keeps such files, "delete" removes them.

        >>> write = table.new_write()
        >>> staged = write.write(pa.table({"id1": ["C"], "id2": [7], "num_cal": [1]}))  # and never committed
        >>> table.maintenance.remove_orphan_files(older_than="2020-01-01").deleted_files_count  # It is too young.
        0
        """
        return remove_orphan_files(
            self._writable,
            older_than=older_than,
            location=location,
            dry_run=dry_run,
            allow_recent=allow_recent,
            file_list=file_list,
            equal_schemes=equal_schemes,
            equal_authorities=equal_authorities,
            prefix_mismatch_mode=prefix_mismatch_mode,
            progress=progress,
        )

    def run(
        self,
        *,
        time_budget_seconds: float | None = None,
        byte_budget: int | None = None,
        dry_run: bool = False,
        only: Sequence[str] | None = None,
        executor: Executor = LOCAL,
        progress: Progress | None = None,
    ) -> RunResult:
        """Run all jobs in a safe order, within the budgets: advance the window, apply the retention, convert deletes,
        drop dead deletes, merge ranges, compact, rewrite manifests, publish a branch that has a target, expire
        snapshots, remove orphan files.

        No job begins after `time_budget_seconds`, and conversion and compaction stop then without harm. `byte_budget`
        limits the bytes that compaction reads. `only` names the jobs to run. An error of a job is in its report, and
        the next job runs. Print the result, or use `report_of(job)`. `progress` receives the progress of each job, and
        the number of completed "jobs". Conversion and compaction use the `executor`.

        >>> result = table.delete_prefix({"id1": "A"})
        >>> result = table.maintenance.run(only=["convert_deletes", "expire_snapshots"], time_budget_seconds=600)
        >>> [(report.job, report.status.value) for report in result.jobs]
        [('convert_deletes', 'done'), ('expire_snapshots', 'done')]
        """
        if isinstance(only, str):
            raise InvalidArgumentError(f"only must be a list of jobs: only=[{only!r}].")
        return run_jobs(
            self._writable,
            self.branch,
            time_budget_seconds=time_budget_seconds,
            byte_budget=byte_budget,
            dry_run=dry_run,
            only=None if only is None else tuple(only),
            executor=executor,
            progress=progress,
        )
