"""Jobs of the page: start, confirm, progress, errors, cancel."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from page_client import Browser, check_harmless

import tableformat as tf
from tableformat.errors import InvalidArgumentError, TableFormatError
from tableformat.maintenance.maintenance import Maintenance
from tableformat.server.answers import RefusedRequestError
from tableformat.server.page.job_runner import Job, JobRunner
from tableformat.server.running import Server

TOKEN = "a secret"


@pytest.fixture
def catalog(tmp_path_factory: pytest.TempPathFactory) -> tf.Catalog:
    catalog = tf.open_catalog(str(tmp_path_factory.mktemp("lake")))
    catalog.create_namespace("db")
    schema = pa.schema([("account", pa.int64())])
    table = catalog.create_table("db.orders", schema, key=["account"])
    table.append(pa.table({"account": range(100)}, schema))
    table.delete_prefix({"account": 7})
    return catalog


@pytest.fixture
def server(catalog: tf.Catalog) -> Iterator[Server]:
    with tf.serve(catalog, token=TOKEN, allow_jobs=True) as server:
        yield server


def ended(runner: JobRunner, job: Job) -> Job:
    deadline = time.monotonic() + 30
    while True:
        (now,) = (each for each in runner.jobs() if each.id == job.id)
        if not now.is_running:
            return now
        assert time.monotonic() < deadline
        time.sleep(0.01)


def finished_page(browser: Browser) -> str:
    deadline = time.monotonic() + 30
    while 'http-equiv="refresh"' in (text := browser.page("/table/jobs?name=db.orders").text):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    check_harmless(text)
    return text


def test_job_dry_run_then_run_is_listed(server: Server, catalog: tf.Catalog) -> None:
    browser = Browser(server, token=TOKEN)
    browser.submit("/jobs/start?name=db.orders", {"kind": "convert_deletes", "dry_run": "yes"})
    assert "dry run: nothing was changed" in finished_page(browser)
    assert catalog.load_table("db.orders").maintenance.health().partial_file_count == 1
    browser.submit("/jobs/start?name=db.orders", {"kind": "convert_deletes", "dry_run": "no"})
    assert finished_page(browser).count('class="job"') == 2
    assert catalog.load_table("db.orders").maintenance.health().partial_file_count == 0
    assert "db.orders" in check_harmless(browser.page("/jobs").text).text


def test_destructive_job_requires_a_dry_run_first(server: Server, catalog: tf.Catalog) -> None:
    browser = Browser(server, token=TOKEN)
    refused = browser.submit("/jobs/start?name=db.orders", {"kind": "expire_snapshots", "dry_run": "no"})
    assert refused.status_code == 400
    assert "dry run first" in refused.text
    browser.submit("/jobs/start?name=db.orders", {"kind": "expire_snapshots", "dry_run": "yes"})
    found = re.search(r'name="confirms" value="(\w+)"', finished_page(browser))
    assert found is not None
    other = {"kind": "run", "confirms": found[1]}
    assert browser.submit("/jobs/start?name=db.orders", other).status_code == 400
    browser.submit("/jobs/start?name=db.orders", {"kind": "expire_snapshots", "confirms": found[1]})
    assert "dry run</h3>" in finished_page(browser)
    assert len(browser.page("/jobs").text.split('class="job"')) == 3


def test_all_due_jobs_run_after_their_dry_run(catalog: tf.Catalog) -> None:
    runner = JobRunner(catalog)
    tried = ended(runner, runner.start("db.orders", "run", dry_run=True))
    assert tried.can_be_confirmed
    done = ended(runner, runner.start("db.orders", "run", dry_run=False, confirms=tried.id))
    assert done.result.is_complete
    assert (done.done, done.total, done.unit) == (10, 10, "jobs")


class Slow:
    """A job that waits in the middle."""

    def __init__(self) -> None:
        self.may_end = threading.Event()

    def __call__(self, *, dry_run: bool, progress: Any) -> None:
        for step in range(500):
            progress(step, 500, "<b>steps")
            if self.may_end.wait(0.02):
                raise TableFormatError("it <b>failed</b>")


def test_progress_errors_and_a_second_job_of_the_table(
    server: Server, catalog: tf.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow()
    monkeypatch.setattr(Maintenance, "compact", slow)
    browser = Browser(server, token=TOKEN)
    start = {"kind": "compact", "dry_run": "no"}
    running = browser.submit("/jobs/start?name=db.orders", start)
    assert 'http-equiv="refresh"' in running.text
    assert "<progress" in running.text
    assert "of 500 <b>steps" in check_harmless(browser.page("/table/jobs?name=db.orders").text).text
    assert browser.submit("/jobs/start?name=db.orders", start).status_code == 409
    slow.may_end.set()
    assert "it &lt;b&gt;failed" in finished_page(browser)


def test_a_running_job_is_cancelled_at_its_next_step(catalog: tf.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    monkeypatch.setattr(Maintenance, "compact", slow)
    runner = JobRunner(catalog)
    job = runner.start("db.orders", "compact", dry_run=False)
    with pytest.raises(RefusedRequestError, match="another job"):
        runner.start("db.orders", "convert_deletes", dry_run=True)
    runner.cancel(job.id)
    assert "cancelled" in ended(runner, job).problem


def test_an_unknown_job_is_refused(catalog: tf.Catalog) -> None:
    with pytest.raises(InvalidArgumentError, match="no job 'drop'"):
        JobRunner(catalog).start("db.orders", "drop", dry_run=False)
