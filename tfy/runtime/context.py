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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat

from tfy.contract import (
    ENV_DONE,
    ENV_INPUT,
    ENV_PLAN,
    ENV_REPORT,
    ENV_TASK_INDEX,
    ENV_TASK_TYPE,
    SIDE_TASKS,
    from_json,
)
from tfy.errors import SpecError
from tfy.plan_model import Plan
from tfy.runtime.identity import Task
from tfy.runtime.report import append_report
from tfy.shares import InputShares

if TYPE_CHECKING:
    import tensorflow as tf

_NEEDED = (ENV_PLAN, ENV_TASK_TYPE, ENV_TASK_INDEX, ENV_REPORT)
_HINT = "start it by: tfy submit JOB.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The job that this process is a task of. Made by `current_job` only."""

    plan: Plan
    task: Task
    report_file: Path
    input_file: Path | None = None
    done_mark: Path | None = None
    """The evaluator's: a file that is there once training is done."""

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
        return self.plan.input.paths if self.plan.input else ()

    @property
    def checkpoint_dir(self) -> str | None:
        """The directory under `checkpoint.dir`, or None where job.yaml names none."""
        return self.plan.checkpoint_dir

    @property
    def checkpoint_keep(self) -> int:
        """How many checkpoints to keep (`checkpoint.keep`)."""
        return self.plan.checkpoint_keep

    @property
    def is_lead(self) -> bool:
        """Whether this task leads: the chief does, or without one worker:0. It alone saves and exports."""
        return str(self.task) == self.plan.lead

    def strategy(
        self,
        *,
        timeout_s: float = 120.0,
        variable_partitioner: tf.distribute.experimental.partitioners.Partitioner | None = None,
    ) -> tf.distribute.Strategy:
        """The strategy of job.yaml, connected to this job's tasks; under it the program makes its model.

        Call it before anything else of TensorFlow. Under parameter_server it waits up to `timeout_s`
        seconds until each server accepts connections, and `variable_partitioner` spreads a variable over
        several of them. An evaluator gets TensorFlow's default strategy.
        Raises StartError that names servers which do not answer, and SpecError under `strategy: none`.
        """
        from tfy.runtime.strategy import make_strategy

        return make_strategy(self.plan, self.task.type, timeout_s, variable_partitioner)

    def dataset(self, pipeline: Callable[[tf.data.Dataset], tf.data.Dataset]) -> tf.data.Dataset:
        """This task's share of the records under `input.paths`, as batches that `pipeline` makes.

        Under parameter_server give it to `ClusterCoordinator.create_per_worker_dataset`: each worker reads
        its own share itself. Under multi_worker_mirrored give it to `fit` or to
        `strategy.experimental_distribute_dataset`; a batch is then the global one, as everywhere in
        TensorFlow. Without end, or one equal epoch on all tasks, as `input.unequal` says. Raises SpecError
        where this task has no share, and what `tfy.runtime.input.make_dataset` raises.
        """
        from tfy.runtime.filesystem import register
        from tfy.runtime.input import check_task, make_dataset, next_set_number

        if self.plan.input is None or self.input_file is None:
            raise SpecError('job.dataset() needs files in job.yaml: input: {paths: ["hdfs:///…"]}')
        register()
        shares = from_json(self.input_file.read_bytes(), InputShares)
        check_task(shares, self.task.type, self.plan.strategy)
        return make_dataset(shares, pipeline, set_number=next_set_number(), seed=self.plan.input.seed)

    def checkpoint_manager(self, checkpoint: tf.train.Checkpoint) -> tf.train.CheckpointManager:
        """TensorFlow's CheckpointManager on `checkpoint.dir`, which keeps the newest `checkpoint.keep`.

        Call its `save` on every task that runs the training: only the lead's checkpoints stay. Raises
        SpecError where job.yaml has no checkpoint.dir.
        """
        from tfy.runtime.checkpoints import make_checkpoint_manager

        return make_checkpoint_manager(
            checkpoint, self._need_checkpoint_dir(), is_lead=self.is_lead, keep=self.checkpoint_keep
        )

    def restore(self, checkpoint: tf.train.Checkpoint) -> str | None:
        """Restores the newest complete checkpoint of this job or an earlier one; its path, or None.

        One that is incomplete or damaged is passed over for the next older one. Call it on every task that
        runs the training: mirrored workers compare what they restored, by the strategy in whose scope this
        is or the variables were made. Raises StartError where there are checkpoints and none can be restored,
        or workers restored different ones, SpecError where job.yaml has no checkpoint.dir.
        """
        from tfy.runtime.checkpoints import restore_newest

        return restore_newest(checkpoint, self._need_checkpoint_dir())

    def checkpoints(self, checkpoint: tf.train.Checkpoint, *, poll_s: float = 5.0) -> Iterator[str]:
        """For an evaluator: the path of each new checkpoint, once it is restored into `checkpoint`.

        Looks every `poll_s` seconds and takes the newest complete one. Ends after the last one, when
        training is done. Raises SpecError on another task, and where job.yaml has no checkpoint.dir.
        """
        from tfy.runtime.checkpoints import follow_checkpoints

        if self.task.type not in SIDE_TASKS:
            raise SpecError(
                f"job.checkpoints() is the evaluator's loop, and this task is {self.task}",
                hint="job.restore(checkpoint) restores the newest checkpoint once",
            )
        mark = self.done_mark
        return follow_checkpoints(
            checkpoint,
            self._need_checkpoint_dir(),
            done=lambda: mark is None or mark.exists(),
            poll_s=poll_s,
        )

    def export(self, model: Any, *, signatures: Any = None) -> str | None:
        """Saves `model` to serve it: a SavedModel in `export.dir` under the next version number; its path.

        Call it on every task that runs the training: the lead saves, the others get None. Readers never see
        half a model. Raises SpecError where job.yaml has no export.dir.
        """
        from tfy.runtime.export import export_model

        if self.plan.export_dir is None:
            raise SpecError('job.export() needs a folder in job.yaml: export: {dir: "hdfs:///…"}')
        return export_model(
            model,
            self.plan.export_dir,
            is_lead=self.is_lead,
            signatures=signatures,
            keep=self.plan.export_keep,
        )

    def _need_checkpoint_dir(self) -> str:
        if self.plan.checkpoint_dir is None:
            raise SpecError('job.yaml has no folder for checkpoints: checkpoint: {dir: "hdfs:///…"}')
        return self.plan.checkpoint_dir

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
        if self.plan.strategy == "multi_worker_mirrored" and not self.is_lead:
            checkpoint = None  # What the others save is thrown away.
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
    files = {name: Path(environ[name]) if environ.get(name) else None for name in (ENV_INPUT, ENV_DONE)}
    return Job(
        plan=plan,
        task=task,
        report_file=Path(environ[ENV_REPORT]),
        input_file=files[ENV_INPUT],
        done_mark=files[ENV_DONE],
    )
