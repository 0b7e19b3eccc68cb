"""`spark.wap.branch` and `spark.wap.id`: the target of a session's writes that are reviewed before publishing."""

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
    """SP-23: the session's settings, for a table that has enabled them."""

    branch: str | None = None
    wap_id: str | None = None

    @classmethod
    def of(cls, arguments: Mapping[str, Any], table: Table) -> WriteAuditPublish:
        """Empty settings if the table's owner has not enabled them. Raises InvalidArgumentError if both are set."""
        if property_one_of(table.properties, WAP_ENABLED, ("false", "true")) == "false":
            return cls()
        branch, wap_id = arguments.get("wap_branch"), arguments.get("wap_id")
        if branch is not None and wap_id is not None:
            raise InvalidArgumentError(
                f"spark.wap.branch is {branch!r} and spark.wap.id is {wap_id!r}, but a write to {table.name} either "
                "goes to the branch or is staged. Nothing was changed. Unset one of them."
            )
        return cls(branch, wap_id)

    @property
    def snapshot_properties(self) -> dict[str, str]:
        """The summary properties of a staged snapshot."""
        return {} if self.wap_id is None else {WAP_ID: self.wap_id}

    def branch_read(self, table: Table) -> str:
        """The branch to read if the statement names no state."""
        return self.branch if self.branch is not None and self.branch in table.metadata.refs else MAIN_BRANCH

    def branch_written(self, session: Session, table: Table, branch: str, *, is_named: bool) -> str:
        """The branch for a write. This is `branch` if the statement names it. Otherwise it is the session's branch,
        which is created at `main` if necessary. Raises InvalidArgumentError if the table was loaded on another branch.
        """
        if self.branch is None or is_named:
            return branch
        if branch not in (MAIN_BRANCH, self.branch):
            raise InvalidArgumentError(
                f"this write to {table.name} is for the branch {branch!r}, but spark.wap.branch is {self.branch!r}. "
                "Nothing was changed. Unset spark.wap.branch to write to another branch."
            )
        self.make_branch(session, table)
        return self.branch

    def make_branch(self, session: Session, table: Table) -> None:
        """Create the session's branch at `main` if it does not exist."""
        if self.branch is not None and self.branch not in table.metadata.refs:
            newest = session.load(tuple(table.iceberg.name()))
            if self.branch not in newest.metadata.refs:
                newest.create_branch(self.branch)


@method("begin_write")
def begin_write(session: Session, request: Request) -> None:
    """Prepare the table for a statement that is about to load it and write to it."""
    if len(request.table) >= 2 and session.catalog.table_exists(request.table):
        table = session.load(request.table)
        WriteAuditPublish.of(request.arguments, table).make_branch(session, table)
