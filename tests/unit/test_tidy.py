"""House rules as tests: sizes, names, words, and the links between specification and code."""

from __future__ import annotations

import ast
import doctest
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = sorted((ROOT / "tableformat").rglob("*.py"))
SPARK = sorted((ROOT / "spark_ext").rglob("*.py"))
JAVA = sorted((ROOT / "spark_ext").rglob("*.java"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
CODE = [*LIBRARY, *SPARK]
SPECS = sorted((ROOT / "specs").rglob("*.md"))
SPECS_INDEX = ROOT / "specs" / "README.md"
REFERENCE = sorted((ROOT / "docs" / "reference").glob("*.md"))
"""Pages of the guide, of which some define rules: those of Spark and of catalogs."""
DOCUMENTS = [*SPECS, *REFERENCE, *sorted(ROOT.glob("*.md"))]

MODULE_LINES_MAX = 500
TEST_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 13
BANNED_MODULE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
BANNED_WORDS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
"""This file alone may hold them; its comments are ruff's."""
RULE_ID = r"(?:DA|RD|FM|CP|MT|CF|CK|SP|ST|SS|PR|RP|SQ|LK)-[1-9][0-9]{0,2}"
RULE = re.compile(rf"\b{RULE_ID}\b")
DEFINITION = re.compile(rf"^(?:#{{2,4}} |\*\*)({RULE_ID})\b", re.MULTILINE)
JAVADOC = re.compile(r"/\*\*.*?\*/", re.DOTALL)
DECISIONS = sorted((ROOT / "specs" / "decisions").glob("[0-9]*.md"))
DECISION = re.compile(r"\b[Dd]ecisions? ([0-9]+)(?:(?:,| and| to) ([0-9]+))*")
DESIGN_NUMBER = re.compile(r"(?<![0-9A-F]{2} )\bD[1-9][0-9]?\b(?! [0-9A-F]{2}\b)")
"""A number from a document outside the repository; hexadecimal bytes do not count."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def nothing_of(offenders: Iterable[str]) -> None:
    """Fails with all of them, one a line."""
    found = list(offenders)
    assert not found, "\n" + "\n".join(found)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def example_lines(path: Path) -> int:
    """The number of lines in docstring examples. The size limit of a module counts its code and prose without them."""
    parser = doctest.DocTestParser()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (node for node in nodes_of(path) if isinstance(node, documented))
    examples = (example for node in nodes for example in parser.get_examples(ast.get_docstring(node) or ""))
    return sum(example.source.count("\n") + example.want.count("\n") for example in examples)


def test_no_module_is_too_long() -> None:
    """Tests may be longer, so that the cases of one subject stay together. Examples are not counted, because every
    operation has one."""
    limits = dict.fromkeys(CODE, MODULE_LINES_MAX) | dict.fromkeys(TESTS, TEST_LINES_MAX)
    lengths = {path: len(path.read_text().splitlines()) for path in limits}
    long = {path: lines - example_lines(path) for path, lines in lengths.items() if lines > limits[path]}
    nothing_of(f"{name_of(path)} {lines}" for path, lines in long.items() if lines > limits[path])


def test_no_function_is_too_long() -> None:
    lengths = {
        f"{name_of(path)}:{function.lineno} {function.name}": (function.end_lineno or 0) - function.lineno + 1
        for path in CODE
        for function in functions(path)
    }
    nothing_of(f"{name} {lines}" for name, lines in lengths.items() if lines > FUNCTION_LINES_MAX)


def test_functions_have_few_positional_arguments() -> None:
    """A call with many positional arguments cannot be read; names can. A command of the command line may have more
    options: no code calls it."""
    wide = [
        f"{name_of(path)}:{function.lineno} {function.name}"
        for path in CODE
        for function in functions(path)
        if len(function.args.args) > 7
        or (
            "cli" not in path.relative_to(ROOT).parts
            and len(function.args.args) + len(function.args.kwonlyargs) > PARAMETERS_MAX
        )
    ]
    nothing_of(wide)


def test_module_names_are_not_generic() -> None:
    nothing_of(name_of(path) for path in [*CODE, *TESTS] if path.stem in BANNED_MODULE_NAMES)


def test_no_todo_comments() -> None:
    """Ruff looks into the comments of Python; this looks everywhere."""
    own = Path(__file__).resolve()
    marked = [
        f"{name_of(path)}:{number} {word}"
        for path in [*CODE, *JAVA, *TESTS, *DOCUMENTS]
        if path != own
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        for word in BANNED_WORDS.findall(line)
    ]
    nothing_of(marked)


def test_no_function_of_the_library_is_a_stub() -> None:
    stubs = [
        f"{name_of(path)}:{function.lineno} {function.name}"
        for path in CODE
        for function in functions(path)
        if any(map(is_stub, ast.walk(function))) and not is_declaration(function) and not is_abstract(path, function)
    ]
    nothing_of(stubs)


def is_stub(node: ast.AST) -> bool:
    """`...` as a statement, or NotImplementedError raised."""
    match node:
        case ast.Expr(value=ast.Constant(value=value)):
            return value is ...
        case ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name))):
            return name == "NotImplementedError"
        case _:
            return False


def is_declaration(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """An overload, whose body is empty by design."""
    return any(ast.unparse(decorator).endswith("overload") for decorator in function.decorator_list)


def is_abstract(path: Path, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A method of a Protocol, or one marked abstract."""
    if any("abstract" in ast.unparse(decorator) for decorator in function.decorator_list):
        return True
    classes = [node for node in nodes_of(path) if isinstance(node, ast.ClassDef)]
    protocols = [node for node in classes if any("Protocol" in ast.unparse(base) for base in node.bases)]
    return any(function.name in {each.name for each in functions_of(node)} for node in protocols)


def functions_of(node: ast.ClassDef) -> list[ast.FunctionDef]:
    return [child for child in node.body if isinstance(child, ast.FunctionDef)]


def test_package_init_files_only_export() -> None:
    """At once, or with PEP 562 when a name is asked for."""
    doing_more = [
        f"{name_of(path)}:{node.lineno} {ast.unparse(node)}"
        for path in CODE
        if path.name == "__init__.py"
        for node in tree_of(path).body
        if not is_export(node)
    ]
    nothing_of(doing_more)


def is_export(node: ast.stmt) -> bool:
    """The contents that a package file may have: its docstring, imports, names, imports for types, PEP 562."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Assign() | ast.AnnAssign() | ast.Import() | ast.ImportFrom():
            return True
        case ast.If():
            return ast.unparse(node.test) == "TYPE_CHECKING"
        case ast.FunctionDef():
            return node.name in ("__getattr__", "__dir__")
        case _:
            return False


def test_modules_have_docstrings() -> None:
    silent = [name_of(path) for path in CODE if path.name != "__init__.py" and not ast.get_docstring(tree_of(path))]
    nothing_of(silent)


def test_only_the_command_line_prints() -> None:
    """The library returns and raises; what is shown is the business of `cli`, `display` and `demo`."""
    shown = ("tableformat/cli/", "tableformat/display/", "tableformat/demo/", "spark_ext/")
    printing = [
        f"{name_of(path)}:{node.lineno}"
        for path in CODE
        if not name_of(path).startswith(shown)
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
    ]
    nothing_of(printing)


def test_library_does_not_import_testing_modules() -> None:
    """The corpus is for tests of other readers."""
    for_tests = ("tableformat/testing/", "tableformat/corpus/")
    importing = [
        name_of(path)
        for path in LIBRARY
        if not name_of(path).startswith(for_tests) and "tableformat.testing" in path.read_text()
    ]
    nothing_of(importing)


def test_test_file_names_are_unique() -> None:
    """There are no packages under tests/, so two files of one name would hide each other."""
    names = Counter(path.name for path in TESTS if path.name not in ("conftest.py", "__init__.py"))
    nothing_of(name for name, count in names.items() if count > 1)


# -- specification and code --------------------------------------------------------------------------------------------


def defined_rules() -> Counter[str]:
    """Rules by their definitions: a heading, or a paragraph that begins with the id in bold."""
    return Counter(rule for path in [*SPECS, *REFERENCE] for rule in DEFINITION.findall(path.read_text()))


def cited_rules(paths: list[Path]) -> set[str]:
    return {rule for path in paths for rule in RULE.findall(path.read_text())}


def documented_rules(paths: list[Path], *, prefix: str = "") -> set[str]:
    """Rules in the docstrings of functions and classes whose names begin with the prefix."""
    return {
        rule
        for path in paths
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name.startswith(prefix)
        for rule in RULE.findall(ast.get_docstring(node) or "")
    }


def test_every_rule_is_defined_once() -> None:
    defined = defined_rules()
    assert {"DA-1", "DA-10", "RD-1", "RD-12", "CP-1", "FM-1", "PR-1", "SS-1"} <= set(defined)
    nothing_of(rule for rule, count in defined.items() if count > 1)


def test_every_rule_is_enforced() -> None:
    """The function or class that enforces a rule names it in its docstring, in Java in its comment."""
    cited = documented_rules([path for path in CODE if "tableformat/testing/" not in name_of(path)])
    cited |= {rule for path in JAVA for text in JAVADOC.findall(path.read_text()) for rule in RULE.findall(text)}
    nothing_of(sorted(set(defined_rules()) - cited))


def test_every_rule_is_tested() -> None:
    """A test names the rule in its docstring."""
    own = Path(__file__).name
    cited = documented_rules([path for path in TESTS if path.name != own], prefix="test_")
    nothing_of(sorted(set(defined_rules()) - cited))


def test_cited_rules_exist() -> None:
    corpus = sorted((ROOT / "specs" / "corpus").glob("*.json"))
    cited = cited_rules([*CODE, *TESTS, *JAVA, *DOCUMENTS, *corpus])
    nothing_of(sorted(cited - set(defined_rules())))


NUMBERS = re.compile(r"sequence_number|_number\b|\bnumbers?\b")
DELETE_AND_DATA = re.compile(r"delete")


def test_sequence_numbers_are_compared_in_one_module() -> None:
    """DA-1, DA-2, RD-2: `deletes/rules.py`; the conflict table asks whether a delete is newer than a plan (CP-9)."""
    comparing = {
        name_of(path)
        for path in LIBRARY
        if "tableformat/testing/" not in name_of(path)
        for node in nodes_of(path)
        if isinstance(node, ast.Compare)
        and any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops)
        and NUMBERS.search(ast.unparse(node))
        and DELETE_AND_DATA.search(ast.unparse(node))
    }
    assert comparing == {"tableformat/deletes/rules.py", "tableformat/commit/conflicts.py"}


def test_cached_property_is_not_used() -> None:
    """CP-63: in Python 3.11 `functools.cached_property` is."""
    nothing_of(name_of(path) for path in LIBRARY if re.search(r"functools import.*cached_property", path.read_text()))


def test_rule_documents_are_indexed_with_their_ids() -> None:
    """`specs/README.md` lists the ids of each document: "FM-1 to FM-24"."""
    stated = dict(re.findall(r"(?m)^\| \[[^\]]+\]\(([\w./-]+\.md)\) \|[^|]*\| ([^|]*?) ?\|$", SPECS_INDEX.read_text()))
    for path in [*sorted(SPECS_INDEX.parent.glob("*.md")), *REFERENCE]:
        numbers = sorted(
            (rule.partition("-")[0], int(rule.partition("-")[2])) for rule in DEFINITION.findall(path.read_text())
        )
        by_kind = {kind: [number for each, number in numbers if each == kind] for kind, _ in numbers}
        if by_kind:
            name = path.name if path in SPECS else f"../docs/reference/{path.name}"
            ranges = [f"{kind}-{found[0]} to {kind}-{found[-1]}" for kind, found in by_kind.items()]
            assert stated[name] == ", ".join(ranges)


def cited_decisions(text: str) -> set[int]:
    return {int(number) for match in DECISION.finditer(text) for number in re.findall(r"[0-9]+", match[0])}


def test_cited_decisions_exist() -> None:
    """`decision 6` is the record `specs/decisions/0006-...`."""
    known = {int(path.name[:4]) for path in DECISIONS}
    assert {1, 6} <= known
    cited = {
        f"{name_of(path)}: decision {number}"
        for path in [*CODE, *TESTS, *JAVA, *DOCUMENTS]
        for number in cited_decisions(path.read_text()) - known
        if path != Path(__file__)
    }
    nothing_of(sorted(cited))


def test_decisions_have_all_sections() -> None:
    parts = ("Context", "Decision", "Evidence", "Consequences")
    for path in DECISIONS:
        text = path.read_text()
        found = [part for part in parts if re.search(rf"(?m)^(?:## {part}$|\*\*{part}\.\*\*)", text)]
        assert sorted(found) == sorted(parts), name_of(path)


def test_decisions_are_indexed() -> None:
    index = (ROOT / "specs" / "decisions" / "README.md").read_text()
    assert [path.name for path in DECISIONS if f"]({path.name})" not in index] == []
    titles = {path.name: path.read_text().partition("\n")[0] for path in DECISIONS}
    assert {name: title for name, title in titles.items() if not title.startswith(f"# {name[:4]} ")} == {}


def test_no_references_to_external_documents() -> None:
    """References that a reader of the repository cannot open explain nothing: decisions are in `specs/decisions`."""
    pointing = {
        f"{name_of(path)}: {number}"
        for path in [*CODE, *TESTS, *JAVA, *DOCUMENTS]
        for number in DESIGN_NUMBER.findall(path.read_text())
    }
    nothing_of(sorted(pointing))


def test_tidy_patterns_match_their_examples() -> None:
    assert cited_decisions("decision 6; Decisions 4, 5 and 12") == {6, 4, 5, 12}
    assert DESIGN_NUMBER.findall("as D" + "7 says, (D" + "13)") == ["D" + "7", "D" + "13"]
    assert DESIGN_NUMBER.findall("magic D1 D3 39 64, 2D, D6E") == []
