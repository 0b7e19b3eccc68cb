"""`spark.wap.branch` and `spark.wap.id`: where the writes of a session go that are looked at before others see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.table.refs import MAIN_BRANCH

from spark_ext.service.registry import Request, method
from spark_ext.service.session import Session
from tableformat.errors import InvalidArgumentError
from tableformat.operations.history.cherrypick import WAP_ID
from tableformat.properties import property_one_of
from tableformat.table import Table

WAP_ENABLED: Final = "write.wap.enabled"


@dataclass(frozen=True, slots=True)
class WriteAuditPublish:
    """SP-23: what the session says, for a table that listens to it."""

    branch: str | None = None
    wap_id: str | None = None

    @classmethod
    def of(cls, arguments: Mapping[str, Any], table: Table) -> WriteAuditPublish:
        """Nothing for a table whose owner has not enabled it. InvalidArgumentError where both are set."""
        if property_one_of(table.properties, WAP_ENABLED, ("false", "true")) == "false":
            return cls()
        branch, wap_id = arguments.get("wap_branch"), arguments.get("wap_id")
        if branch is not None and wap_id is not None:
            raise InvalidArgumentError(
                f"spark.wap.branch is {branch!r} and spark.wap.id is {wap_id!r}: a write to {table.name} goes to the "
                "branch, or is staged. Nothing was changed. Unset one of them."
            )
        return cls(branch, wap_id)

    @property
    def snapshot_properties(self) -> dict[str, str]:
        """What a staged snapshot says of itself."""
        return {} if self.wap_id is None else {WAP_ID: self.wap_id}

    def branch_read(self, table: Table) -> str:
        """The branch that a table is read at whose state nobody names."""
        return self.branch if self.branch is not None and self.branch in table.metadata.refs else MAIN_BRANCH

    def branch_written(self, session: Session, table: Table, branch: str, *, is_named: bool) -> str:
        """The branch that a write goes to which is about `branch`: that one, where the statement names it, else the
        session's, which begins where `main` is. InvalidArgumentError where the table was loaded on another branch."""
        if self.branch is None or is_named:
            return branch
        if branch not in (MAIN_BRANCH, self.branch):
            raise InvalidArgumentError(
                f"this write to {table.name} is for the branch {branch!r}, and spark.wap.branch is {self.branch!r}. "
                "Nothing was changed. Unset it to write to another branch."
            )
        self.make_branch(session, table)
        return self.branch

    def make_branch(self, session: Session, table: Table) -> None:
        """A branch that is not there begins where `main` is."""
        if self.branch is not None and self.branch not in table.metadata.refs:
            newest = session.load(tuple(table.iceberg.name()))
            if self.branch not in newest.metadata.refs:
                newest.create_branch(self.branch)


@method("begin_write")
def begin_write(session: Session, request: Request) -> None:
    """The table is about to be loaded by a statement that writes to it."""
    if len(request.table) >= 2 and session.catalog.table_exists(request.table):
        table = session.load(request.table)
        WriteAuditPublish.of(request.arguments, table).make_branch(session, table)
