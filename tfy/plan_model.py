"""The plan: the resolved request as frozen records, which travel as JSON to the cluster side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfy.contract import task_name
from tfy.errors import InternalError

# In the order of the plan's tasks.
_MAY_LEAD = ("chief", "worker", "ps")

Hosted = Literal["executor", "service"]
Runs = Literal["program", "server"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerPlan:
    """One container: what is asked of YARN, and what YARN makes of it by rounding up."""

    memory_mib: int
    allocated_mib: int
    vcores: int
    gpus: int = 0
    node_label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """The tasks of one type: who hosts their nodes, and what a node runs."""

    type: str
    instances: int
    container: ContainerPlan
    hosted: Hosted
    runs: Runs


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFile:
    """A file of the job's directory on HDFS that containers get under `local_name`."""

    name: str
    local_name: str
    archive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPlan:
    """Sizes of the Spark application's parts, in MiB."""

    am: ContainerPlan
    am_heap_mib: int
    executor_heap_mib: int
    executor_overhead_mib: int
    driver_heap_mib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPlan:
    """What the tasks read, and how it is shared out among the tasks of `task_type`."""

    paths: tuple[str, ...]
    shard: str
    unequal: str
    seed: int
    task_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The resolved request: pure data, what is sent is made from it alone."""

    submission_id: str
    name: str
    user: str
    queue: str
    strategy: str
    job_dir: str
    python: str
    program: str
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    tasks: tuple[TaskPlan, ...]
    driver: ContainerPlan
    spark: SparkPlan | None
    """None where no task is hosted by a Spark executor."""
    staged: tuple[StagedFile, ...]
    input: InputPlan | None
    rdma: str
    checkpoint_dir: str | None
    checkpoint_keep: int
    fresh: bool
    """Whether what is in `checkpoint_dir` is moved aside before the first task starts."""
    export_dir: str | None
    export_keep: int
    start_timeout_s: int
    total_timeout_s: int
    evaluate_timeout_s: int

    def task(self, task_type: str) -> TaskPlan:
        """The plan of one task type."""
        for task in self.tasks:
            if task.type == task_type:
                return task
        raise InternalError(f"the plan has no task type {task_type!r}")

    def has(self, task_type: str) -> bool:
        """Whether there are tasks of this type."""
        return any(task.type == task_type for task in self.tasks)

    @property
    def lead(self) -> str:
        """The task that leads, as `chief:0`: the chief, else worker:0, else ps:0."""
        first = next(task.type for task in self.tasks if task.type in _MAY_LEAD)
        return task_name(first, 0)

    def task_names(self) -> tuple[str, ...]:
        """All tasks by name, in the order of the plan and of their index."""
        return tuple(task_name(task.type, index) for task in self.tasks for index in range(task.instances))
