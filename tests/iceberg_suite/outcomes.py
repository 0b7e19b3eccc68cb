"""What became of each method of the suite, and how that differs from the list of what is known."""

from __future__ import annotations

import fnmatch
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

HERE: Final = Path(__file__).parent
DIFFERENCES: Final = HERE / "differences.toml"
OTHER_ERRORS: Final = HERE / "other-errors.json"

Outcome = Literal["passed", "other error", "failed", "skipped"]
"""Of a method with several sets of parameters the worst; "other error" is one that Iceberg's test expects too, of
another class or in other words. "skipped" is what the test itself assumes not to hold."""
_WORST_FIRST: Final[tuple[Outcome, ...]] = ("failed", "other error", "passed", "skipped")
_VARYING: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f-]{27,}|by_location\.t[0-9a-f]{8}|\d{4}-\d\d-\d\dT[\d:.]+|\d{5,}"
    r"|(file:)?/[^ ,']*|\[SQLSTATE.*|SQLSTATE.*|#\d+L?"
)
"""Ids, times and places in messages."""


@dataclass(frozen=True, slots=True, order=True)
class Method:
    """A method of a class of the suite, inherited ones included."""

    test_class: str
    """Without the package's beginning, `org.apache.iceberg.`."""
    name: str
    """Empty for what belongs to no method, such as the set-up of the class."""

    def __str__(self) -> str:
        return f"{self.test_class}.{self.name}" if self.name else self.test_class


@dataclass(frozen=True, slots=True)
class Result:
    outcome: Outcome
    errors: tuple[str, ...]
    """First lines of the failures, or the errors in other words, without what varies."""


def results_of(lines: Iterable[Mapping[str, Any]]) -> dict[Method, Result]:
    """One result a method, from a line for each of its invocations."""
    outcomes: dict[Method, set[Outcome]] = {}
    errors: dict[Method, dict[str, None]] = {}
    for line in lines:
        if line["status"] == "done":
            continue
        method = Method(line["class"].removeprefix("org.apache.iceberg."), line["method"])
        is_other = line["status"] == "passed" and line.get("other_errors")
        outcomes.setdefault(method, set()).add("other error" if is_other else line["status"])
        told = [_first_lines(line["error"])] if line["status"] == "failed" else line.get("other_errors", ())
        errors.setdefault(method, {}).update(dict.fromkeys(_VARYING.sub("...", each).strip() for each in told))
    return {
        method: Result(next(each for each in _WORST_FIRST if each in found), tuple(errors[method]))
        for method, found in sorted(outcomes.items())
    }


def _first_lines(error: str) -> str:
    """Without the stack: a message of AssertJ has several lines."""
    return " ".join(line.strip() for line in error.split("\n\tat ", 1)[0].splitlines() if line.strip())[:400]


def share_passed(results: Mapping[Method, Result]) -> str:
    """The figures in a line; a method that was skipped is in none of them."""
    count = Counter(result.outcome for result in results.values())
    ran = count["passed"] + count["other error"] + count["failed"]
    share = (count["passed"] + count["other error"]) / ran if ran else 0.0
    return (
        f"{ran} methods ran: {count['passed']} passed, {count['other error']} passed with an error of another class or "
        f"in other words, {count['failed']} failed; {share:.1%} passed. {count['skipped']} skipped by their own "
        "assumptions."
    )


@dataclass(frozen=True, slots=True)
class KnownFailures:
    """An entry of `differences.toml`."""

    patterns: tuple[str, ...]
    """`Class.method`, with `*` for any text."""
    reason: str
    may_pass: bool = False
    """Whether settings that Iceberg's tests draw by lot decide: no outcome of these is a difference."""

    def has(self, method: Method) -> bool:
        short = f"{method.test_class.rpartition('.')[2]}.{method.name}"
        return any(fnmatch.fnmatchcase(short, pattern) for pattern in self.patterns)


def known_failures(differences: Path = DIFFERENCES) -> list[KnownFailures]:
    """The entries of a list of differences, which may be empty."""
    entries = tomllib.loads(differences.read_text()).get("difference", [])
    return [KnownFailures(tuple(each["methods"]), each["reason"], each.get("may_pass", False)) for each in entries]


def compare(results: Mapping[Method, Result]) -> list[str]:
    """What is not as the lists say, a line each."""
    return [*compare_failures(results, DIFFERENCES), *_compare_errors(results)]


def compare_failures(results: Mapping[Method, Result], differences: Path) -> list[str]:
    """Methods that fail and are not listed, and listed methods that pass, a line each."""
    known = known_failures(differences)
    problems = []
    for method, result in results.items():
        listed = [each for each in known if each.has(method)]
        if result.outcome == "failed" and not listed:
            problems.append(f"{method} failed and is not in {differences.name}: {'; '.join(result.errors)}")
        elif result.outcome in ("passed", "other error") and listed and not any(each.may_pass for each in listed):
            problems.append(f"{method} passes now: take it out of {differences.name}")
    return problems


def _compare_errors(results: Mapping[Method, Result]) -> list[str]:
    other = json.loads(OTHER_ERRORS.read_text())
    problems = []
    for method, result in results.items():
        expected = other.get(str(method), [])
        if result.outcome == "other error" and sorted(result.errors) != sorted(expected):
            problems.append(f"{method} has other errors than in {OTHER_ERRORS.name}: {'; '.join(result.errors)}")
        elif result.outcome == "passed" and expected:
            problems.append(f"{method} has Iceberg's errors now: take it out of {OTHER_ERRORS.name}")
    return problems


def write_other_errors(results: Mapping[Method, Result]) -> None:
    """Take the errors of the methods that ran into the list; those of others stay."""
    listed = json.loads(OTHER_ERRORS.read_text()) if OTHER_ERRORS.exists() else {}
    for method, result in results.items():
        listed.pop(str(method), None)
        if result.outcome == "other error":
            listed[str(method)] = sorted(result.errors)
    OTHER_ERRORS.write_text(json.dumps(dict(sorted(listed.items())), indent=1, ensure_ascii=False) + "\n")
