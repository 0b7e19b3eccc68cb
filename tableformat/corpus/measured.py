"""Results of readers that were measured before, from the output of `corpus check --output json`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tableformat.corpus.answers import CaseResult, Verdict
from tableformat.corpus.check import Reader, ReaderResult
from tableformat.corpus.write import WrittenCase
from tableformat.errors import InvalidArgumentError


def read_measured(path: Path, cases: Sequence[WrittenCase]) -> list[ReaderResult]:
    """The readers of the file, with their results for the cases. Raises InvalidArgumentError if a case was not
    measured."""
    document = json.loads(path.read_text("utf-8"))
    by_case = {case["id"]: case["results"] for case in document["cases"]}
    missing = [case.id for case in cases if case.id not in by_case]
    if missing:
        raise InvalidArgumentError(
            f"{path} has no results for {len(missing)} cases, such as {missing[0]}, which are newer than the file. "
            "Run its readers again."
        )
    return [
        ReaderResult(
            Reader(reader["name"], tuple(shlex.split(reader["command"]))),
            reader["version"],
            {case.id: _result(by_case[case.id][reader["name"]]) for case in cases},
        )
        for reader in document["readers"]
    ]


def _result(stated: dict[str, Any]) -> CaseResult:
    return CaseResult(Verdict(stated["verdict"]), stated["detail"])
