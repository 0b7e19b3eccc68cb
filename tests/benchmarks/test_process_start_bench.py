"""The time of a new process until it has a table; each command and each Python worker of Spark takes this time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from measuring import Contender, against_target, heading, race, show, show_all

import tableformat as tf

_ROUNDS = 9
_OURS = "import tableformat as tf; t = tf.open_catalog({lake!r}).load_table('db.t')"
_THEIRS = (
    "from pyiceberg.catalog.sql import SqlCatalog; "
    "t = SqlCatalog('tableformat', uri='sqlite:///{lake}/catalog.db', warehouse={lake!r}).load_table('db.t')"
)


def test_new_process_loads_and_reads_a_small_table(benchmark: Any, tmp_path: Path) -> None:
    lake = str(tmp_path)
    with tf.open_catalog(lake) as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.t", pa.schema([("id", pa.int64())]), key=["id"]).append([{"id": 1}, {"id": 2}])
    contenders = {
        "load_table": _code(_OURS.format(lake=lake)),
        "load_table by PyIceberg": _code(_THEIRS.format(lake=lake)),
        "a scan": _code(f"{_OURS.format(lake=lake)}; assert t.scan().to_arrow().num_rows == 2"),
        "a scan by PyIceberg": _code(f"{_THEIRS.format(lake=lake)}; assert t.scan().to_arrow().num_rows == 2"),
        "tableformat --help": _command("--help"),
        "tableformat head": _command("--catalog", lake, "head", "db.t"),
        "import pyarrow.dataset": _code("import pyarrow.dataset"),
    }
    timings = race(benchmark, {name: Contender(run) for name, run in contenders.items()}, rounds=_ROUNDS)
    heading(f"a process's first table, each of {_ROUNDS} times in a new process")
    show_all(timings)
    against_target("load_table", timings["load_table"].cpu / timings["load_table by PyIceberg"].cpu, 1.2)
    against_target("a scan", timings["a scan"].cpu / timings["a scan by PyIceberg"].cpu, 1.2)
    show("modules", _modules(_OURS.format(lake=lake)))


def _code(text: str) -> Callable[[Any], object]:
    return lambda _: _run("-c", text)


def _command(*words: str) -> Callable[[Any], object]:
    return lambda _: _run("-m", "tableformat.cli", *words)


def _run(*arguments: str) -> str:
    """Compiled modules are written in any environment, because an installed package has them."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True, env=kept)
    return done.stdout


def _modules(text: str) -> str:
    ours = "sum(name.startswith('tableformat') for name in sys.modules)"
    return _run("-c", f"import sys; {text}; print(len(sys.modules), 'of which ours', {ours})").strip()
