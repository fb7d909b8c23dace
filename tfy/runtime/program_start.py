"""What is done inside a program that tfy started, once it has imported TensorFlow and before it goes on."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from tfy.contract import (
    ENV_NODE_PID,
    ENV_PLAN,
    ENV_REPORT,
    ENV_TASK_INDEX,
    ENV_TASK_TYPE,
    from_json,
    task_name,
)
from tfy.errors import TfyError
from tfy.plan_model import Plan
from tfy.runtime.counting import start_counting

_LOG = logging.getLogger(__name__)


def begin_program(environ: Mapping[str, str]) -> None:
    """Tells this process's counters from now on, and mends the state file of older checkpoints.

    Whatever is amiss with that is a warning, and never the program's end.
    """
    try:
        _begin(environ)
    except (TfyError, OSError, KeyError, ValueError) as error:
        _LOG.warning("tfy could not look after this program as it should: %r", error)


def _begin(environ: Mapping[str, str]) -> None:
    report = environ.get(ENV_REPORT)
    if report:
        start_counting(Path(report))
    # Not in what the program starts itself: it may be saving by then.
    if environ.get(ENV_NODE_PID) == str(os.getppid()):
        plan = from_json(Path(environ[ENV_PLAN]).read_bytes(), Plan)
        if may_repair(plan, environ[ENV_TASK_TYPE], int(environ[ENV_TASK_INDEX])):
            _repair(plan)


def may_repair(plan: Plan, task_type: str, index: int) -> bool:
    """Whether this task may mend the state file: nobody may be saving meanwhile, and who reads it must.

    Mirrored workers all look for a checkpoint before any can save, since making the strategy waits for
    all of them; elsewhere only the task that leads does either.
    """
    if plan.checkpoint_dir is None or plan.task(task_type).runs != "program":
        return False
    if plan.strategy == "multi_worker_mirrored":
        return task_type == "worker"
    return task_name(task_type, index) == plan.lead


def _repair(plan: Plan) -> None:
    import tensorflow as tf

    from tfy.runtime.checkpoint_files import repair_state

    try:
        repair_state(plan.checkpoint_dir or "")
    except tf.errors.OpError as error:
        _LOG.warning("%s: older checkpoints could not be looked at: %s", plan.checkpoint_dir, error.message)
