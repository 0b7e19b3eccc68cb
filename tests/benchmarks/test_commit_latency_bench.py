"""How long one small append takes, from the call to the snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from measuring import Contender, heading, race, show_all
from nine_million_rows import new_table, rows_of_messages, some_messages

_ROUNDS = 50


def test_append_of_one_message(benchmark: Any, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    rows = rows_of_messages(some_messages(1, seed=5), seed=5)
    timings = race(benchmark, {"append of 15 rows": Contender(lambda _: table.append(rows))}, rounds=_ROUNDS)
    heading(f"append of one message, {_ROUNDS} commits in a row")
    show_all(timings)
    assert table.scan().count() == _ROUNDS * len(rows)
