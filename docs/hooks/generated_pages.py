"""Pages that are made when the guide is built: the command line, the specification, the pictures."""

from __future__ import annotations

import posixpath
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import typer.main
from mkdocs.structure.files import File, Files

import tableformat as tf
from tableformat.cli.main import app

ROOT: Final = Path(__file__).parents[2]
SPECS: Final = ROOT / "specs"
LINK: Final = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """The specification comes last in the contents, whatever documents it has."""
    names = [path.relative_to(SPECS).as_posix() for path in sorted(SPECS.rglob("*.md"))]
    decisions = [f"specification/{name}" for name in names if name.startswith("decisions/")]
    others = [f"specification/{name}" for name in names if not name.startswith("decisions/") and name != "README.md"]
    config.nav.append({"Specification": ["specification/README.md", *others, {"Decisions": decisions}]})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the generated files to those of `docs`."""
    for name, content in generated().items():
        files.append(File.generated(config, name, content=content))
    return files


def generated() -> Mapping[str, str]:
    """Content by path below `docs`."""
    return {
        "reference/cli.md": command_line(),
        **dict(specification()),
        **pictures(),
    }


# -- the command line --------------------------------------------------------------------------------------------------


def command_line() -> str:
    root = typer.main.get_command(app)
    lines = [
        "# Command line",
        "",
        "Made from the commands themselves; `tableformat COMMAND --help` prints the same.",
        "",
        "Options of every command, before or after its name:",
        "",
        *option_table(root),
    ]
    for name, command in sorted(root.commands.items()):
        lines += described(f"tableformat {name}", command)
        for inner, subcommand in sorted(getattr(command, "commands", {}).items()):
            lines += described(f"tableformat {name} {inner}", subcommand)
    return "\n".join(lines) + "\n"


def described(name: str, command: Any) -> list[str]:
    arguments = [each.metavar or each.name.upper() for each in command.params if each.param_type_name == "argument"]
    usage = " ".join([name, *arguments])
    return ["", f"## {name}", "", f"`{usage}`", "", command.help or "", "", *option_table(command)]


def option_table(command: Any) -> list[str]:
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    rows = [f"| `{', '.join(each.opts)}` | {cell(each.help or '')} |" for each in options]
    return ["| option | what it does |", "|---|---|", *rows] if rows else []


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


# -- properties --------------------------------------------------------------------------------------------------------


# -- the specification -------------------------------------------------------------------------------------------------


def specification() -> Iterator[tuple[str, str]]:
    for path in sorted(SPECS.rglob("*.md")):
        below = path.relative_to(SPECS).as_posix()
        yield f"specification/{below}", LINK.sub(within(posixpath.dirname(below)), path.read_text())


def within(directory: str) -> Callable[[re.Match[str]], str]:
    """Links to the guide's pages are relative to where the specification is in the site. Links to other files outside
    of the specification become their text, because those files are only in the repository."""

    def replaced(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(directory, found[2]))
        if not (target.endswith(".md") and (SPECS / target).is_file()):
            return found[1]
        if target.startswith("../docs/"):
            page = posixpath.relpath(target.removeprefix("../docs/"), posixpath.join("specification", directory))
            return f"[{found[1]}]({page}{found[3] or ''})"
        return found[1] if target.startswith("../") else found[0]

    return replaced


# -- pictures ----------------------------------------------------------------------------------------------------------


def pictures() -> dict[str, str]:
    """Layers of small tables, drawn by the library."""
    with tempfile.TemporaryDirectory() as directory, tf.open_catalog(f"{directory}/lake") as catalog:
        catalog.create_namespace("db")
        return {
            "pictures/replace.svg": replaced_messages(catalog).layers().svg(),
            "pictures/window.svg": window(catalog).layers().svg(),
        }


def replaced_messages(catalog: tf.Catalog) -> tf.Table:
    columns = pa.schema([("message", pa.int64()), ("row", pa.int32())])
    table = catalog.create_table("db.messages", columns, key=["message", "row"])
    for first in (0, 40, 20, 70):
        rows = [(message, row) for message in range(first, first + 30) for row in range(3)]
        table.append(pa.table({"message": [each[0] for each in rows], "row": [each[1] for each in rows]}))
    table.replace(pa.table({"message": [25, 26, 27], "row": [1, 1, 1]}), prefix=["message"])
    table.delete_range(on=["message"], lower=[55], upper=[80])
    table.append(pa.table({"message": [60, 62], "row": [1, 1]}))
    return table


def window(catalog: tf.Catalog) -> tf.Table:
    partitions = tf.RangePartitions(on=["year"], bounds=[(2018, 2021), (2022, 2026)], step=1)
    columns = pa.schema([("year", pa.int32()), ("id", pa.int64())])
    table = catalog.create_table("db.sales", columns, key=["year", "id"], range_partitions=partitions)
    years = [2018, 2019, 2020, 2022, 2023, 2024]
    table.append(pa.table({"year": [each for each in years for _ in range(2)], "id": [1, 9] * len(years)}))
    table.range_partitions.drop(2018, 2019)
    table.delete_prefix({"year": 2023})
    table.append(pa.table({"year": [2023, 2024], "id": [5, 5]}))
    return table
