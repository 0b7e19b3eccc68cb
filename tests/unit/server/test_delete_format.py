"""Tables for clients that read no deletion vectors (SV-15)."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests
from pyiceberg.catalog import load_catalog
from served_lakes import orders, own_rows, replace_message, seen_by

from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.properties import SERVE_DELETE_FORMAT
from tableformat.server.options import ServeOptions
from tableformat.server.running import Server
from tableformat.server.served_tables import ServedTables

NAME = ("db", "orders")


def test_version_2_is_served_with_position_deletes(tmp_path: Path) -> None:
    table = orders(tmp_path)
    replace_message(table, 1)
    with Server(table.catalog, ServeOptions(delete_format="position-deletes"), "127.0.0.1", 0) as server:
        client = load_catalog("served", type="rest", uri=server.url)
        assert seen_by(client) == own_rows(table)  # type: ignore[arg-type]


def test_version_3_is_refused_with_the_reason_while_deletes_are_live(tmp_path: Path) -> None:
    table = orders(tmp_path, 3)
    with Server(table.catalog, ServeOptions(delete_format="position-deletes"), "127.0.0.1", 0) as server:
        address = f"{server.url}/v1/namespaces/db/tables/orders"
        assert requests.get(address, timeout=30).status_code == 200
        replace_message(table, 1)
        answers = [requests.get(address, timeout=30), requests.post(f"{address}/plan", json={}, timeout=30)]
        table.refresh().maintenance.convert_deletes()
        answers.append(requests.get(address, timeout=30))
        for answer in answers:
            assert answer.status_code == 406
            assert answer.json()["error"]["type"] == "UnsupportedOperationException"
            assert "format version 3" in answer.json()["error"]["message"]
        page = requests.get(f"{server.url}/table/engines?name=db.orders", timeout=30).text
        assert "Other engines get an error: the table cannot be served" in page
        table.refresh().maintenance.compact(rewrite_all=True)
        assert requests.get(address, timeout=30).status_code == 200


def test_property_of_the_table_comes_before_the_option_of_the_server(tmp_path: Path) -> None:
    table = orders(tmp_path, 3, **{SERVE_DELETE_FORMAT: "position-deletes"})
    replace_message(table, 1)
    with pytest.raises(UnsupportedFeatureError):
        ServedTables(table.iceberg.catalog, 0).load(NAME)
    table.refresh().set_properties({SERVE_DELETE_FORMAT: "any"})
    assert ServedTables(table.iceberg.catalog, 0, "position-deletes").load(NAME).metadata.current_snapshot()


def test_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        ServeOptions(delete_format="vectors")
    with pytest.raises(InvalidArgumentError):
        orders(tmp_path, **{SERVE_DELETE_FORMAT: "vectors"})
