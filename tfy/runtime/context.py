"""What a program that tfy started may ask: its task, its strategy, its data, where to save.

    from tfy.runtime import current_job

    job = current_job()
    coordinator = tf.distribute.coordinator.ClusterCoordinator(job.strategy())
    batches = iter(coordinator.create_per_worker_dataset(job.dataset(make_batches)))
    job.report(step=200, loss=loss)

TensorFlow is imported only where a method needs it.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, SupportsFloat

from tfy.contract import (
    ENV_PLAN,
    ENV_REPORT,
    ENV_TASK_INDEX,
    ENV_TASK_TYPE,
    Plan,
    from_json,
    task_name,
)
from tfy.errors import SpecError, StartError
from tfy.runtime.report import append_report

if TYPE_CHECKING:
    import tensorflow as tf

_NEEDED = (ENV_PLAN, ENV_TASK_TYPE, ENV_TASK_INDEX, ENV_REPORT)
_HINT = "start it by: tfy submit JOB.yaml"
_CONNECT_TIMEOUT_S = 2.0
_RETRY_S = 0.2


@dataclass(frozen=True, slots=True)
class Task:
    """One process of the training program. `str(task)` is its name, as `worker:3`."""

    type: str
    index: int

    def __str__(self) -> str:
        return task_name(self.type, self.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The job that this process is a task of. Made by `current_job` only."""

    plan: Plan
    task: Task
    report_file: Path

    @property
    def name(self) -> str:
        """The job's name in job.yaml."""
        return self.plan.name

    @property
    def submission_id(self) -> str:
        """The uuid that names the job's directory on HDFS."""
        return self.plan.submission_id

    @property
    def input_paths(self) -> tuple[str, ...]:
        """The paths and patterns under `input.paths`, as written in job.yaml."""
        return self.plan.input_paths

    @property
    def checkpoint_dir(self) -> str | None:
        """The directory under `checkpoint.dir`, or None where job.yaml names none."""
        return self.plan.checkpoint_dir

    @property
    def checkpoint_keep(self) -> int:
        """How many checkpoints to keep (`checkpoint.keep`)."""
        return self.plan.checkpoint_keep

    def strategy(self, *, timeout_s: float = 120.0) -> tf.distribute.ParameterServerStrategy:
        """The strategy of job.yaml, connected to this job's workers and parameter servers.

        Waits up to `timeout_s` seconds until each of them accepts connections. Raises StartError
        that names those which do not, and SpecError where job.yaml has another strategy.
        """
        if self.plan.strategy != "parameter_server":
            raise SpecError(
                f"job.strategy() needs `strategy: parameter_server`, job.yaml has {self.plan.strategy!r}"
            )
        import tensorflow as tf

        from tfy.runtime.filesystem import register

        register()
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        wait_for_servers(_servers(resolver.cluster_spec().as_dict()), timeout_s)
        return tf.distribute.ParameterServerStrategy(resolver)

    def dataset(self, pipeline: Callable[[tf.data.Dataset], tf.data.Dataset]) -> tf.data.Dataset:
        """The records under `input.paths`, shared out among the workers, without end.

        For `ClusterCoordinator.create_per_worker_dataset`: each worker reads its own share
        itself, again and again. `pipeline` makes a dataset of batches from a dataset of
        serialized records (scalar tf.string). Raises what `tfy.runtime.input.make_dataset` raises.
        """
        from tfy.runtime.filesystem import register
        from tfy.runtime.input import make_dataset

        register()
        return make_dataset(self.input_paths, pipeline, self.plan.task("worker").instances)

    def report(
        self,
        *,
        step: SupportsFloat | None = None,
        checkpoint: str | None = None,
        **metrics: SupportsFloat,
    ) -> None:
        """Tell `tfy` how far the training is: a step, a checkpoint's path, numbers by name.

        A number is Python's, a NumPy scalar or an eager tensor without dimensions; NaN and
        infinities are accepted. Raises TypeError, which names the argument, for anything else.
        """
        if step is None and checkpoint is None and not metrics:
            raise TypeError("report() was given nothing to report")
        append_report(self.report_file, step=step, checkpoint=checkpoint, metrics=metrics)


def current_job(environ: Mapping[str, str] | None = None) -> Job:
    """The job that this process is a task of, from the environment that tfy gave it.

    Raises SpecError where tfy did not start this process.
    """
    environ = os.environ if environ is None else environ
    missing = [name for name in _NEEDED if not environ.get(name)]
    if missing:
        raise SpecError(
            f"this program is not running in a tfy job ({', '.join(missing)} not set)",
            hint=_HINT,
        )
    if not environ[ENV_TASK_INDEX].isdecimal():
        raise SpecError(f"{ENV_TASK_INDEX}={environ[ENV_TASK_INDEX]!r} is not a whole number from 0 on")
    plan_file = Path(environ[ENV_PLAN])
    try:
        plan = from_json(plan_file.read_bytes(), Plan)
    except OSError as error:
        raise SpecError(f"{ENV_PLAN}={plan_file}: {error.strerror}", hint=_HINT) from error
    task = Task(environ[ENV_TASK_TYPE], int(environ[ENV_TASK_INDEX]))
    return Job(plan=plan, task=task, report_file=Path(environ[ENV_REPORT]))


def _servers(cluster: Mapping[str, list[str]]) -> dict[str, str]:
    """Task name to host:port of all tasks that run TensorFlow's built-in server."""
    return {
        task_name(task_type, index): address
        for task_type in ("ps", "worker")
        for index, address in enumerate(cluster.get(task_type, []))
    }


def wait_for_servers(servers: Mapping[str, str], timeout_s: float) -> None:
    """Wait until every server (task name to host:port) accepts a connection.

    Raises StartError after `timeout_s` seconds, naming each that did not and why. TensorFlow
    itself would wait for them without an end and without a word.
    """
    deadline = time.monotonic() + timeout_s
    missing = {task: f"{address}: not tried" for task, address in servers.items()}
    while missing:
        for task in list(missing):
            error = _connection_error(servers[task], deadline)
            if error is None:
                del missing[task]
            else:
                missing[task] = f"{servers[task]}: {error}"
        if missing and time.monotonic() >= deadline:
            listed = "; ".join(f"{task} at {reason}" for task, reason in missing.items())
            raise StartError(f"no connection within {timeout_s:g} s to {listed}")
        if missing:
            time.sleep(_RETRY_S)


def _connection_error(address: str, deadline: float) -> str | None:
    host, _, port = address.rpartition(":")
    limit_s = max(0.1, min(_CONNECT_TIMEOUT_S, deadline - time.monotonic()))
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=limit_s).close()
    except OSError as error:
        return error.strerror or str(error)
    return None
