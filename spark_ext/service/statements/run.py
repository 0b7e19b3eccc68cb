"""The entry point of the Java side for statements of the SQL extension."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Final

from spark_ext.service.registry import Request, method
from spark_ext.service.session import Session
from spark_ext.service.statements.statement import Rows, handler_of

_MODULES: Final = ("refs", "layout", "ranges", "analyze")


@method("run_statement")
def run_statement(session: Session, request: Request) -> Rows:
    """Run a statement on the current state of the table, and return its rows."""
    _load_statements()
    statement = {**request.arguments["statement"], "case_sensitive": request.arguments["case_sensitive"]}
    return handler_of(statement["name"])(session.load(request.table), statement) or []


@cache
def _load_statements() -> None:
    for module in _MODULES:
        importlib.import_module(f"spark_ext.service.statements.{module}")
