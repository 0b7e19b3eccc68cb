"""Upkeep after each commit of a writer, by the table's policy (MT-83)."""

from __future__ import annotations

import copy
import logging

from pyiceberg.table import Table as IcebergTable

from tableformat.errors import CommitExitError, CommitInterruptedError, InvalidArgumentError
from tableformat.maintenance.running.executors import LOCAL, Executor, ExecutorChoice
from tableformat.maintenance.upkeep.backlog import Backlog
from tableformat.maintenance.upkeep.policy import UpkeepMode, UpkeepPolicy
from tableformat.properties import UPKEEP

logger = logging.getLogger(__name__)


def after_commit(iceberg: IcebergTable, branch: str, *, executor: Executor | ExecutorChoice = LOCAL) -> None:
    """MT-83: run the upkeep that is due, or start it in the background. The handle does not move. `executor` is where
    files are rewritten.

    The commit has already happened, so an error here is not raised to the writer. It is logged, and counted in the
    metrics.
    """
    if UPKEEP not in iceberg.metadata.properties:
        return
    try:
        policy = UpkeepPolicy.of(iceberg.metadata.properties)
    except InvalidArgumentError as error:
        logger.warning("upkeep of %s is off: %s", ".".join(iceberg.name()), error)
        return
    if policy.mode is UpkeepMode.OFF or not Backlog.of(iceberg, branch, policy).is_due:
        return
    from tableformat.maintenance.upkeep.background import BACKGROUND
    from tableformat.maintenance.upkeep.metrics import metrics_of
    from tableformat.maintenance.upkeep.rounds import rounds_asked_for

    handle = copy.copy(iceberg)
    metrics = metrics_of(iceberg.metadata.table_uuid)
    try:
        if policy.mode is UpkeepMode.BACKGROUND:
            BACKGROUND.notify(handle, branch, executor)
            return
        for result in rounds_asked_for(handle, branch, executor=executor):
            metrics.add(result)
    except CommitInterruptedError as interrupt:
        # Another type, because the writer's own commit is not the commit with the unknown outcome.
        raise KeyboardInterrupt(str(interrupt)) from interrupt
    except CommitExitError as ended:
        logger.warning("upkeep of %s was interrupted by an exit: %s", ".".join(iceberg.name()), ended)
        raise SystemExit(ended.code) from ended
    except Exception as error:  # noqa: BLE001 - the commit has happened: an error would say that it has not
        metrics.fail(error)
        logger.warning("upkeep of %s failed; the preceding commit was applied: %s", ".".join(iceberg.name()), error)
