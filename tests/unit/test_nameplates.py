"""Every package has a docstring in its `__init__.py`, and the names in it exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = sorted(path.parent for top in ("tableformat", "spark_ext") for path in (ROOT / top).rglob("__init__.py"))
NAME = re.compile(r"`([A-Za-z_][\w./]*)(?:\([\w, ]*\))?`")
PUBLIC = {"tableformat", "spark_ext", "__init__.py", "dry_run", "progress", "db.t.snapshots", "db.t.branch_x"}
SENTENCES = range(1, 9)


def plate(room: Path) -> str:
    return ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""


@cache
def names_within(room: Path) -> set[str]:
    """The modules and packages below this package, and the names that its modules define."""
    names = {path.stem for path in room.rglob("*.py")} | {path.name for path in room.rglob("*") if path.is_dir()}
    for path in room.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
            elif isinstance(node, ast.Assign):
                names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return names


def test_every_room_says_what_it_is_in_a_few_sentences() -> None:
    lengths = {room.relative_to(ROOT).as_posix(): len(re.findall(r"[.)](?=\s|$)", plate(room))) for room in ROOMS}
    assert {room: count for room, count in lengths.items() if count not in SENTENCES} == {}


def test_nameplates_name_what_is_there() -> None:
    """A module, class or function of the package; a file of the repository; another package; or a Java class."""
    rooms = {path.name for path in (ROOT / "tableformat").rglob("*") if path.is_dir()}
    java = {path.stem for path in (ROOT / "spark_ext" / "java").rglob("*.java")}
    wrong = [
        f"{room.relative_to(ROOT).as_posix()}: {name}"
        for room in ROOMS
        for name in NAME.findall(plate(room))
        if name not in names_within(room) | rooms | java | PUBLIC and not is_file(name)
    ]
    assert wrong == []


def is_file(name: str) -> bool:
    return any((top / name).exists() for top in (ROOT, ROOT / "tableformat"))
