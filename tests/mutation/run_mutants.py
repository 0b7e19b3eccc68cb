"""Would a test notice? mutmut changes the modules that are named, one place at a time; here each change is tried.

    make mutate MODULES=tableformat/scan/planner.py TESTS=tests/unit/scan

mutmut's own runner collects the tests again for each change, which takes seconds. This one collects them once and
forks: each change is a process that runs the tests that come to its line, up to one that fails.
What lived is in `mutants/survivors.diff` as it comes; figures of each module come at the end. Nothing else is written.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from io import StringIO
from itertools import accumulate
from pathlib import Path
from types import FrameType
from typing import Any, Final

import libcst as cst
import pytest
from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants, setup_source_paths
from mutmut.configuration import config
from mutmut.mutation.data import MutantLineSpans, SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.utils.format_utils import mangled_name_from_mutant_name

REPOSITORY: Final = Path(__file__).parents[2]
MUTANTS: Final = Path("mutants")
LEAST_SECONDS: Final = 20.0
"""How long a test may take at least with a change, however fast it is without."""
SLOWER: Final = 20.0
"""How much longer it may take than the processor's time without a change: others want the processor as well."""

KILLED, LIVED, NOT_REACHED, STOPPED = "killed", "lived", "not reached", "stopped"


@dataclass(frozen=True)
class Mutant:
    name: str
    module: str
    first_line: int
    """Of the function as it was, in the module that mutmut wrote."""
    line: int
    """The first one there that the change is about."""
    text: str

    @staticmethod
    def of(name: str, module: str) -> Mutant:
        spans = MutantLineSpans.load(module)
        assert spans is not None
        names = (f"{mangled_name_from_mutant_name(name)}__mutmut_orig".rpartition(".")[2], name.rpartition(".")[2])
        before, after = spans.read_function_sources(names)
        lines = zip(before.replace(*names).splitlines(), after.splitlines(), strict=False)
        first_line = spans.span_by_function_name[names[0]].start
        changed = ((place, old) for place, (old, new) in enumerate(lines) if old != new)
        place, text = next(changed, (0, ""))
        return Mutant(name, module, first_line, first_line + place, text.strip())


@dataclass(eq=False)
class MutantRuns:
    """A plugin of pytest: the tests are collected by then, and are run once for each change."""

    mutants: Sequence[Mutant]
    jobs: int
    most_seconds: float
    failed: bool = False
    durations: dict[str, float] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    running: dict[int, tuple[Mutant, Path]] = field(default_factory=dict)
    killers: Counter[str] = field(default_factory=Counter)
    """Tests that killed other changes are tried first: by name, and by function and name."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        assert not session.testsfailed, "tests cannot be collected"
        items = {item.nodeid: item for item in session.items if not _uses_polars(item)}
        # Of what fails nobody looks at the example. pytest warns where Hypothesis is imported before it.
        import_module("hypothesis.internal.conjecture.engine").MAX_SHRINKING_SECONDS = 0
        tests_of, self.durations = self._reached_tests(list(items.values()))
        for mutant in self.mutants:
            tests = sorted(_reaching(mutant, tests_of), key=partial(self._order, mutant))
            if not tests:
                self._count(mutant, NOT_REACHED)
                continue
            while len(self.running) >= self.jobs:
                self._wait()
            self._start(mutant, [items[test] for test in self._within_seconds(tests)])
        while self.running:
            self._wait()
        return True

    def _order(self, mutant: Mutant, test: str) -> tuple[float, ...]:
        return -self.killers[_place(mutant) + test], -self.killers[test], self.durations[test]

    def _within_seconds(self, tests: Sequence[str]) -> list[str]:
        so_far = accumulate(self.durations[test] for test in tests)
        return [test for test, seconds in zip(tests, so_far, strict=True) if seconds <= self.most_seconds] or tests[:1]

    def _reached_tests(self, items: Sequence[pytest.Item]) -> tuple[dict[str, list[str]], dict[str, float]]:
        """The tests that reach each line, less those that fail by themselves, and the processor's time for each."""
        directory = _directory("reached")
        if (child := os.fork()) == 0:
            _leave_terminal(directory)
            tests_of: dict[str, list[str]] = defaultdict(list)
            reached: set[str] = set()
            trace = _tracer({str(Path(mutant.module).absolute()): mutant.module for mutant in self.mutants}, reached)
            for item, following in zip(items, [*items[1:], None], strict=True):
                self.failed, before = False, time.process_time()
                Path("running").write_text(item.nodeid)
                threading.settrace(trace)
                sys.settrace(trace)
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
                sys.settrace(None)
                self.durations[item.nodeid] = time.process_time() - before
                for line in () if self.failed else reached:
                    tests_of[line].append(item.nodeid)
                reached.clear()
            Path("reached.json").write_text(json.dumps([tests_of, self.durations]))
            os._exit(0)
        os.waitpid(child, 0)
        shutil.rmtree(directory)
        if not Path("reached.json").exists():
            sys.exit(f"{Path('running').read_text()} ended the process: leave it out (--skip)")
        tests_of, durations = json.loads(Path("reached.json").read_text())
        print(f"{len(items)} tests, {sum(durations.values()):.0f} s", flush=True)
        return tests_of, durations

    def _start(self, mutant: Mutant, items: Sequence[pytest.Item]) -> None:
        directory = _directory(mutant.name)
        if (child := os.fork()) == 0:
            _leave_terminal(directory)
            set_mutant_under_test(mutant.name)
            for item, following in zip(items, [*items[1:], None], strict=True):
                # Nothing handles the signal, so it ends a process that waits for ever as well.
                signal.setitimer(signal.ITIMER_REAL, LEAST_SECONDS + SLOWER * self.durations[item.nodeid])
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failed:
                    (directory / "killer").write_text(item.nodeid)
                    os._exit(1)
            os._exit(0)
        self.running[child] = mutant, directory

    def _wait(self) -> None:
        """Until one of the processes has ended."""
        child, status = os.wait()
        mutant, directory = self.running.pop(child)
        with suppress(ProcessLookupError):  # Mostly nobody is left of the group.
            os.killpg(child, signal.SIGKILL)
        if (directory / "killer").exists():
            killer = (directory / "killer").read_text()
            self.killers.update((killer, _place(mutant) + killer))
        shutil.rmtree(directory, ignore_errors=True)
        is_stopped = os.WIFSIGNALED(status)
        self._count(mutant, STOPPED if is_stopped else KILLED if os.WEXITSTATUS(status) else LIVED)

    def _count(self, mutant: Mutant, outcome: str) -> None:
        self.counts[mutant.module][outcome] += 1
        with open("results.jsonl", "a") as results:
            results.write(json.dumps({"mutant": mutant.name, "outcome": outcome}) + "\n")
        if outcome != KILLED:
            os.chdir("..")
            diff = get_diff_for_mutant(mutant.name, path=mutant.module)
            os.chdir(MUTANTS)
            with open("survivors.diff", "a") as survivors:
                survivors.write(f"# {outcome}: {mutant.name}\n{diff}\n\n")


def _place(mutant: Mutant) -> str:
    return f"{mutant.module}:{mutant.first_line} "


def _reaching(mutant: Mutant, tests_of: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Tests that came to the line of the change; some lines of a statement count with the ones before them."""
    for line in range(mutant.line, mutant.first_line - 1, -1):
        if tests := tests_of.get(f"{mutant.module}:{line}"):
            return tests
    return ()


def _tracer(modules: Mapping[str, str], reached: set[str]) -> Callable[..., Any]:
    """For `sys.settrace`: the lines of these modules that are reached."""

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        module = modules.get(frame.f_code.co_filename)
        if module is None:
            return None
        if event == "line":
            reached.add(f"{module}:{frame.f_lineno}")
        return trace

    return trace


def _directory(name: str) -> Path:
    """For what the tests of one process write."""
    root = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path("/tmp")
    directory = root / f"mutants-{os.getpid()}" / name
    directory.mkdir(parents=True)
    return directory


def _leave_terminal(directory: Path) -> None:
    """A process by itself: its own group, its own directory, nobody to print for."""
    os.setsid()
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(directory)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _uses_polars(item: pytest.Item) -> bool:
    """Its threads start when it is imported, and a fork has not got them: it would wait for ever."""
    return "polars" in item.nodeid or any(word in inspect.getsource(item.function) for word in ("pl.", "polars"))


def _without_call(statement: cst.Expr) -> Iterator[cst.CSTNode]:
    if isinstance(statement.value, cst.Call):
        yield cst.Pass()


def _part_of_condition(condition: cst.BooleanOperation) -> Iterator[cst.CSTNode]:
    """In the parentheses of the whole: a part may go over several lines."""
    for part in (condition.left, condition.right):
        lpar, rpar = (*condition.lpar, *part.lpar), (*part.rpar, *condition.rpar)
        yield part.with_changes(lpar=lpar, rpar=rpar)


def _choose_operators(*, decides: bool) -> None:
    """mutmut's, and two that it lacks; `decides` leaves those out that mostly end in an error."""
    if decides:
        left_out = {"operator_string", "operator_arg_removal", "operator_dict_arguments", "operator_assignment"}
        mutation_operators[:] = [each for each in mutation_operators if each[1].__name__ not in left_out]
    mutation_operators.extend([(cst.Expr, _without_call), (cst.BooleanOperation, _part_of_condition)])


def _make_mutants(modules: Sequence[str]) -> list[Mutant]:
    shutil.rmtree(MUTANTS, ignore_errors=True)
    MUTANTS.mkdir()
    config().only_mutate = list(modules)
    set_mutant_under_test("mutant_generation")
    with redirect_stdout(StringIO()):  # A line for each module of the library.
        copy_src_dir()
        copy_also_copy_files()
        setup_source_paths()
        create_mutants(1)
    made = []
    for module in modules:
        data = SourceFileMutationData(path=module)
        data.load()
        made += [Mutant.of(name, module) for name in data.exit_code_by_key]
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="+", help="paths of modules, as tableformat/scan/planner.py")
    parser.add_argument("--tests", nargs="+", required=True, help="what to give to pytest")
    parser.add_argument("--skip", default="", help="tests to leave out, as in `pytest -k`")
    parser.add_argument("--jobs", type=int, default=1, help="changes that are tried at the same time")
    parser.add_argument("--seconds", type=float, default=30, help="of tests for each change")
    parser.add_argument(
        "--decides", action="store_true", help="leave out changes of texts, and arguments and values that are missing"
    )
    parser.add_argument("--spare", help="a regular expression: lines that are left as they are")
    parser.add_argument("--each", type=int, default=1, help="try one of so many changes, where all would take too long")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the names of the changes to try")
    arguments = parser.parse_args()
    os.chdir(REPOSITORY)
    _choose_operators(decides=arguments.decides)
    mutants = [each for each in _make_mutants(arguments.modules) if any(part in each.name for part in arguments.only)]
    if arguments.spare is not None:
        mutants = [each for each in mutants if not re.search(arguments.spare, each.text)]
    mutants = mutants[:: arguments.each]
    set_mutant_under_test("")
    os.environ["HYPOTHESIS_PROFILE"] = "ci"  # The same examples with and without the change.
    os.chdir(MUTANTS)
    print(f"{len(mutants)} mutants", flush=True)
    runs = MutantRuns(mutants, arguments.jobs, arguments.seconds)
    plugins_left_out = ("benchmark", "xdist", "memray", "cacheprovider")
    options = ["--rootdir=.", "-q", "-s", *(f"-pno:{name}" for name in plugins_left_out)]
    options += ["-k", f"not ({arguments.skip})"] if arguments.skip else []
    pytest.main([*options, *arguments.tests], plugins=[runs])
    for module in arguments.modules:
        counts = runs.counts[module]
        figures = ", ".join(f"{counts[outcome]} {outcome}" for outcome in (KILLED, LIVED, NOT_REACHED, STOPPED))
        print(f"{module}: {counts.total()} mutants, {figures}")


if __name__ == "__main__":
    sys.exit(main())
