"""The corpus for other readers: its cases, the files of each case, and the sentences of the specification that decide
them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tableformat.corpus.cases import choose_cases, read_cases
from tableformat.corpus.rules import ICEBERG_RULES, read_rules
from tableformat.corpus.specification import specification_directory
from tableformat.corpus.write import ICEBERG, RANGE_DELETES, WrittenCase, read_written, write_corpus
from tableformat.errors import InvalidArgumentError, NotFoundError

CASES = read_cases()
RULES = read_rules(specification_directory())


def test_case_ids_are_unique_and_rules_are_known() -> None:
    assert len({case.id for case in CASES}) == len(CASES) > 150
    assert {rule for case in CASES for rule in case.stated["rules"]} <= set(RULES)
    assert set(ICEBERG_RULES) <= set(RULES)


def test_rule_text_includes_its_list() -> None:
    assert RULES["DA-4"].title == "null matches null"
    assert RULES["DA-4"].text.endswith("whose value in that column is null, and no other row.")
    assert "data_seq <= delete_seq" in RULES["DA-1"].text
    assert RULES["RD-2"].document == "range-deletes.md"
    assert all(rule.text and "](" not in rule.text for rule in RULES.values())


def test_cases_exist_in_both_versions_unless_version_specific() -> None:
    versions: dict[str, list[int]] = {}
    for case in CASES:
        versions.setdefault(case.id.rpartition(".")[0], []).append(case.format_version)
    only = {name: found for name, found in versions.items() if found != [2, 3]}
    assert only["position-deletes/a-deletion-vector-replaces-the-position-deletes-of-its-file"] == [3]
    assert only["position-deletes/positions-between-two-commits-of-one-data-file-reach-the-first"] == [2]
    assert len(only) < 10


def test_written_tables_match_their_description(tmp_path: Path) -> None:
    wanted = ["null-matches-null", "a-path-matches-character", "the-lower-bound-is-deleted", "with-other-bytes"]
    cases = choose_cases(CASES, wanted)
    written = write_corpus(tmp_path / "corpus", cases, RULES)
    by_id = {case.id.partition("/")[2]: case for case in written}
    null = by_id["null-matches-null-and-nothing-else.v3"]
    assert (null.part, null.deletes, null.format_version) == (ICEBERG, ("equality",), 3)
    assert [rule.id for rule in null.rules] == ["DA-4"]
    assert null.columns == {"id": "long", "cat": "string"}
    assert null.rows is not None
    assert sorted(null.rows, key=repr) == [(3, ""), (3, "a"), (4, None), (None, None)]
    upgraded = by_id["a-path-matches-character-for-character.v3"]
    assert upgraded.deletes == ("position",)
    assert json.loads(upgraded.metadata.read_text())["format-version"] == 3
    assert by_id["the-lower-bound-is-deleted-the-upper-bound-stays.v2"].part == RANGE_DELETES
    assert by_id["a-file-of-deletion-vectors-with-other-bytes-in-it-fails-the-scan.v3"].rows is None
    assert {case.id: case for case in read_written(tmp_path / "corpus")} == {case.id: case for case in written}
    assert "corpus check" in (tmp_path / "corpus" / "README.md").read_text()


def test_unknown_case_or_directory_error_names_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="no case 'nul-matches'"):
        choose_cases(CASES, ["nul-matches"])
    with pytest.raises(InvalidArgumentError, match="no cases in"):
        read_cases(tmp_path)
    with pytest.raises(InvalidArgumentError, match="does not contain a corpus"):
        read_written(tmp_path)
    with pytest.raises(NotFoundError):
        specification_directory(tmp_path)


def test_delete_file_paths_have_the_order_of_the_case(tmp_path: Path) -> None:
    """DA-1, DA-10: readers may rely on sorted paths, so a case decides the order, not the names of its files."""
    wanted = ["out-of-order-and-twice.v2", "a-path-matches-character-for-character.v2"]
    out_of_order, in_order = map(
        paths_of_position_deletes, write_corpus(tmp_path / "corpus", choose_cases(CASES, wanted), RULES)
    )
    if "out-of-order" not in out_of_order[0]:
        out_of_order, in_order = in_order, out_of_order
    assert out_of_order[1] == ["B.parquet", "A.parquet", "A.parquet", "A.parquet"]
    assert in_order[1] == ["/A.parquet", "/A.parquet", "A.parquet", "elsewhere.parquet"]


def paths_of_position_deletes(case: WrittenCase) -> tuple[str, list[str]]:
    """The id of the case, and the paths in its one delete file, below the directory of data."""
    files = map(pq.ParquetFile, (case.metadata.parent.parent / "data").glob("*.parquet"))
    (deletes,) = (file for file in files if "file_path" in file.schema_arrow.names)
    return case.id, [each.as_py().rpartition("/data/")[2] for each in deletes.read()["file_path"]]
