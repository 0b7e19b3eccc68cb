"""Pages that are made when the guide is built: the command line, the specification, the pictures."""

from __future__ import annotations

import json
import posixpath
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import typer.main
from mkdocs.structure.files import File, Files

import tableformat as tf
from tableformat.cli.main import app

ROOT: Final = Path(__file__).parents[2]
SPECS: Final = ROOT / "specs"
NOTEBOOKS: Final = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
SETUP: Final = re.compile(r"<!-- setup\n(.*?)-->", re.DOTALL)
NOTEBOOK_LINK: Final = re.compile(r"\]\((\S*notebooks/\S+)\.ipynb\)")
LINK: Final = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """The specification comes last in the contents, whatever documents it has."""
    names = [path.relative_to(SPECS).as_posix() for path in sorted(SPECS.rglob("*.md"))]
    decisions = [f"specification/{name}" for name in names if name.startswith("decisions/")]
    others = [f"specification/{name}" for name in names if not name.startswith("decisions/") and name != "README.md"]
    config.copyright = f"tableformat {version('tableformat')}"
    config.nav.append({"Notebooks": [f"notebooks/{path.stem}.md" for path in NOTEBOOKS]})
    config.nav.append({"Specification": ["specification/README.md", *others, {"Decisions": decisions}]})
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The set-up of a page is folded, so that the blocks of the page run when they are copied in their order. Links to
    notebooks lead to their pages."""
    folded = r'<details markdown="1"><summary>Set-up of this page</summary>\n\n```python\n\1```\n\n</details>'
    return NOTEBOOK_LINK.sub(r"](\1.md)", SETUP.sub(folded, markdown))


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
        **{f"notebooks/{path.stem}.md": notebook(path) for path in NOTEBOOKS},
        **pictures(),
    }


# -- notebooks ---------------------------------------------------------------------------------------------------------


def notebook(path: Path) -> str:
    """The cells of a notebook with their outputs, as a page."""
    parts: list[str] = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        parts += [source] if cell["cell_type"] == "markdown" else [f"```python\n{source}\n```"]
        parts += [output_text(each) for each in cell.get("outputs", ())]
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f"{title}\n\n[Download this notebook]({path.name})\n{rest}\n"


def output_text(output: Any) -> str:
    """The output of a cell: printed text as a code block, a display as HTML in one line, which Markdown keeps."""
    if output["output_type"] == "stream":
        return f"```\n{''.join(output['text'])}```"
    data = output["data"]
    shown = data.get("text/html") or data.get("image/svg+xml")
    if shown is None:
        return f"```\n{''.join(data['text/plain'])}\n```"
    return f'<div class="notebook-output">{"".join("".join(shown).splitlines())}</div>'


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
    text, _, example = (command.help or "").partition("Example: ")
    shown = ["", "```console", f"$ {' '.join(example.split())}", "```"] if example else []
    return ["", f"## {name}", "", f"`{usage}`", "", text.strip(), *shown, "", *option_table(command)]


def option_table(command: Any) -> list[str]:
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    rows = [f"| `{option_text(each)}` | {cell(each.help or '')}{default_text(each)} |" for each in options]
    return ["| option | what it does |", "|---|---|", *rows] if rows else []


def option_text(option: Any) -> str:
    value = "" if option.is_flag else f" {option.metavar or option.display_type(None).strip('<>')}"
    return f"{', '.join([*option.opts, *option.secondary_opts])}{value}"


def default_text(option: Any) -> str:
    is_obvious = option.is_flag or option.default in (None, "", ()) or callable(option.default)
    return "" if is_obvious else f" Default: `{getattr(option.default, 'value', option.default)}`."


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
