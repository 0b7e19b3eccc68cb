"""`corpus write` and `corpus check`: writes the cases of the specification as tables, and checks readers with them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tableformat.cli.commands import Command, Group
from tableformat.cli.output import OutputFormat
from tableformat.cli.running import drawn_progress
from tableformat.cli.session import Session
from tableformat.errors import InvalidArgumentError

if TYPE_CHECKING:
    from tableformat.corpus.write import WrittenCase
    from tableformat.maintenance.running.progress import Progress

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Test any reader of Iceberg with tables that have deletes of every kind, and their expected rows.",
)

CorpusOption = Annotated[
    Path | None,
    typer.Option(
        "--corpus", metavar="DIR", help="Cases in the form of specs/corpus, instead of those of this version."
    ),
]
CaseOption = Annotated[
    list[str] | None,
    typer.Option("--case", metavar="TEXT", help="Only cases whose id contains this text. Repeatable."),
]


@app.command("write", cls=Command)
def write(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new directory.")],
    *,
    corpus: CorpusOption = None,
    case: CaseOption = None,
) -> None:
    """Write the cases as Iceberg tables, each with the expected rows and the rules that decide it.

    Example: tableformat corpus write tables/
    """
    from rich.text import Text

    session = Session.of(context)
    with drawn_progress(session.output.progress_console()) as progress:
        written = _written(directory, corpus, case or (), progress)

    def document() -> dict[str, Any]:
        return {"directory": str(directory.resolve()), "cases": [each.to_dict(directory.resolve()) for each in written]}

    session.output.emit(
        document,
        lambda: Text(f"{len(written)} tables in {directory}; {directory / 'README.md'} explains how to read them."),
    )


@app.command("check", cls=Command)
def check(
    context: typer.Context,
    directory: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="Output of `corpus write`. Default: tables in a temporary directory."),
    ] = None,
    *,
    reader: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]COMMAND",
            help="A command that gets paths of metadata files and prints a line of JSON for each "
            "(page 'Test a reader' of the guide). {readers} in the command is the directory of the included readers. "
            "tableformat, pyiceberg and polars need no command. Repeatable.",
        ),
    ] = None,
    results: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Earlier output of `corpus check --output json`; its readers are not run again. Repeatable.",
        ),
    ] = None,
    leave_out_missing: Annotated[
        bool,
        typer.Option("--leave-out-missing", help="Skip readers that are not installed here, and print the reason."),
    ] = False,
    corpus: CorpusOption = None,
    case: CaseOption = None,
    tables_per_process: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Paths per process; after a crash, the remaining paths get a new process."
        ),
    ] = 20,
    timeout: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Time limit for one table.")] = 60.0,
) -> None:
    """Run readers over the cases and print the result for every table.

    Ends with status 1 if a reader returned wrong rows or crashed. A refusal is not a failure, because no row is lost.

    Example: tableformat corpus check --reader pyiceberg --markdown
    """
    from tableformat.corpus.check import Reader
    from tableformat.corpus.check import check as run
    from tableformat.corpus.matrix import Matrix, render_markdown, render_matrix
    from tableformat.corpus.measured import read_measured

    session = Session.of(context)
    if not reader and not results:
        raise typer.BadParameter("pass a reader, or a file with --results.", param_hint="--reader")
    readers = [Reader.parse(text) for text in reader or ()]
    with (
        drawn_progress(session.output.progress_console()) as progress,
        _tables(directory, corpus, case or (), progress) as cases,
    ):
        measured = [result for path in results or () for result in read_measured(path, cases)]
        for each in readers:
            with _left_out(session, is_allowed=leave_out_missing):
                measured.append(
                    run(each, cases, tables_per_process=tables_per_process, timeout_seconds=timeout, progress=progress)
                )
        matrix = Matrix(tuple(cases), tuple(measured))
    if session.output.format is OutputFormat.MARKDOWN:
        session.output.write(render_markdown(matrix))
    else:
        session.output.emit(matrix.to_dict, lambda: render_matrix(matrix))
    if any(True for _ in matrix.failures()):
        raise typer.Exit(1)


@contextmanager
def _left_out(session: Session, *, is_allowed: bool) -> Iterator[None]:
    """A reader that is not installed here is skipped, and the reason is printed."""
    try:
        yield
    except InvalidArgumentError as error:
        if not is_allowed:
            raise
        session.output.note(f"skipped: {error}")


@contextmanager
def _tables(
    directory: Path | None, corpus: Path | None, texts: Sequence[str], progress: Progress | None
) -> Iterator[list[WrittenCase]]:
    """The cases of a directory that was written before, or of a temporary directory that exists during the block."""
    from tableformat.corpus.cases import choose_cases
    from tableformat.corpus.write import read_written

    if directory is None:
        with tempfile.TemporaryDirectory(prefix="tableformat-corpus-") as temporary:
            yield _written(Path(temporary), corpus, texts, progress)
        return
    if corpus is not None:
        raise typer.BadParameter(f"the tables in {directory} exist already.", param_hint="--corpus")
    yield choose_cases(read_written(directory), texts)


def _written(
    directory: Path, corpus: Path | None, texts: Sequence[str], progress: Progress | None
) -> list[WrittenCase]:
    from tableformat.corpus.cases import choose_cases, read_cases
    from tableformat.corpus.rules import read_rules
    from tableformat.corpus.specification import specification_directory
    from tableformat.corpus.write import write_corpus

    cases = choose_cases(read_cases(corpus), texts)
    rules = read_rules(specification_directory(corpus))
    return write_corpus(
        directory,
        cases,
        rules,
        progress=None if progress is None else lambda done, what: progress(done, len(cases), what),
    )
