"""The procedures, compared with their tables in the guide; needs no Spark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spark_ext.service.procedures.calls import load_procedures
from spark_ext.service.procedures.options import Options, boolean
from spark_ext.service.procedures.procedure import SYSTEM, Parameter, Procedure, procedure_named, procedure_names
from tableformat.errors import InvalidArgumentError, NotFoundError, UnknownOptionError

load_procedures()
PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "spark-procedures.md").read_text()
ROW = re.compile(r"^\| `(?P<name>[a-z_]+)` \| (?P<arguments>.*?) \| (?P<result>.*?) \|$", re.MULTILINE)
ROWS = {match["name"]: match for match in ROW.finditer(PAGE)}


def named(name: str) -> Procedure:
    return procedure_named((*SYSTEM, name))


def test_every_procedure_is_specified() -> None:
    assert sorted(ROWS) == procedure_names()


def after_table(found: Procedure) -> list[Parameter]:
    """The parameters after the table, which is the first parameter if there is one."""
    parameters = list(found.parameters)
    return parameters[1:] if parameters[0].name == "table" else parameters


@pytest.mark.parametrize("name", procedure_names())
def test_arguments_and_columns_are_as_specified(name: str) -> None:
    """PR-22: ours stand behind the semicolon."""
    row, found = ROWS[name], named(name)
    assert re.findall(r"`([a-z_]+)`", row["arguments"]) == [each.name for each in after_table(found)]
    assert re.findall(r"\*\*`([a-z_]+)`\*\*", row["arguments"]) == [
        each.name for each in after_table(found) if each.is_required
    ]
    icebergs, _, ours = row["result"].partition(";")
    assert re.findall(r"`([a-z_]+)`", icebergs) == found.columns.names
    assert re.findall(r"`([a-z_]+)`", ours) == found.more_columns.names
    assert ("all_columns" in {each.name for each in found.parameters}) == bool(ours)
    assert "table" in {each.name for each in found.parameters[:2]}
    assert found.description.endswith(".")


def test_procedure_names_are_case_insensitive() -> None:
    """PR-1."""
    assert named("Fast_Forward").name == "fast_forward"
    assert procedure_named(("SYSTEM", "Fast_Forward")).name == "fast_forward"
    with pytest.raises(NotFoundError):
        named("fastforward")
    with pytest.raises(NotFoundError):
        procedure_named(("fast_forward",))


OPTIONS = Options(
    "job",
    keywords={"size": ("size_bytes", int), "all": ("rewrite_all", boolean)},
    hints=frozenset({"threads"}),
    fixed={"order": "none"},
    refused={"spec": "it stays"},
)


def test_options_become_keyword_arguments() -> None:
    given = {"size": "7", "all": "TRUE", "threads": "x", "order": "none"}
    assert OPTIONS.read(given) == {"size_bytes": 7, "rewrite_all": True}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("size", "big", "option 'size' must be a whole number, not 'big'"),
        ("all", "1", "option 'all' must be true or false, not '1'"),
        ("order", "desc", "option 'order' must be 'none', not 'desc'"),
        ("spec", "1", "option 'spec' is not supported: it stays"),
    ],
)
def test_invalid_option_values_are_rejected(name: str, value: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        OPTIONS.read({name: value})


def test_unknown_option_error_suggests_the_nearest() -> None:
    """PR-3."""
    with pytest.raises(UnknownOptionError):
        OPTIONS.read({"thread": "3"})
