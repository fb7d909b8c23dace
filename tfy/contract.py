"""What the submit side and the cluster side agree upon.

Names of environment variables, of keys in the rendezvous, of files in a container and in a
job's directory, and the frozen records that travel as JSON: the plan to the cluster, task
records from the nodes to the driver, the job's report from the driver to the client.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import msgspec

from tfy.errors import InternalError
from tfy.shares import InputReport
from tfy.states import JobState, TaskState

# --- environment variables of every task ------------------------------------------------------
ENV_PLAN = "TFY_PLAN"
ENV_REPORT = "TFY_REPORT"
ENV_NODE_PID = "TFY_NODE_PID"
ENV_INPUT = "TFY_INPUT"
ENV_DONE = "TFY_DONE"
ENV_TASK_TYPE = "TFY_TASK_TYPE"
ENV_TASK_INDEX = "TFY_TASK_INDEX"
ENV_JOB_NAME = "TFY_JOB_NAME"
ENV_SUBMISSION_ID = "TFY_SUBMISSION_ID"
ENV_CHECKPOINT_DIR = "TFY_CHECKPOINT_DIR"
ENV_EXPORT_DIR = "TFY_EXPORT_DIR"
ENV_TF_CONFIG = "TF_CONFIG"
# In Spark's executors: for find_gpus.sh.
ENV_GPUS = "TFY_GPUS"

# --- names in a container's working directory -------------------------------------------------
LOCAL_CODE = "tfy_code"
LOCAL_PROGRAM = "program"
LOCAL_HADOOP_CONF = "hadoop_conf"
LOCAL_PLAN = "plan.json"
LOCAL_INPUT = "input.json"
LOCAL_DONE = "training_done"
LOCAL_CERTIFICATE = ".skein.crt"
LOCAL_KEY = ".skein.pem"

# --- names in the private folder of a job's directory -----------------------------------------
SECRET_CERTIFICATE = "skein.crt"
SECRET_KEY = "skein.pem"

# --- tags of the two applications: YARN lowercases them ---------------------------------------
TAG_ALL = "tfy"


def submission_tag(submission_id: str) -> str:
    """The tag that both applications of a job carry."""
    return f"tfy:{submission_id}"


def submission_of_tags(tags: tuple[str, ...]) -> str | None:
    """The submission id among an application's tags, or None where tfy did not submit it."""
    for tag in tags:
        head, colon, submission_id = tag.partition(":")
        if head == TAG_ALL and colon and submission_id:
            return submission_id
    return None


# --- keys in the rendezvous (current state only) ----------------------------------------------
KEY_CLUSTER = "cluster"
KEY_STOP = "stop"
PREFIX_TASK = "task/"


def task_key(name: str) -> str:
    """The key that holds the record of the task `name` (as `worker:3`)."""
    return f"{PREFIX_TASK}{name}"


def task_name(task_type: str, index: int) -> str:
    """How a task is called everywhere: type, colon, index."""
    return f"{task_type}:{index}"


def type_of_task(name: str) -> str:
    """The type in a task's name: `worker` of `worker:3`."""
    return name.partition(":")[0]


# Outside the cluster spec: TensorFlow would wait for them (tf-yarn 53421d2, TonY#506).
SIDE_TASKS = ("evaluator", "tensorboard")
# In the order of the plan's tasks.
_MAY_LEAD = ("chief", "worker", "ps")

# --- the plan ---------------------------------------------------------------------------------
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


# --- records --------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number that the program reported, its newest value.

    JSON has no word for a number that is not finite: such a value is "nan", "inf" or "-inf".
    """

    name: str
    value: float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class InputProgress:
    """What one task's reader has read of its share of the input (`job.dataset`).

    `epochs` counts passes over the whole share that were read to the end; `epoch_records`, `epoch_bytes`
    and `coverage` are of the first of them, `uneven` is how many others differed from it. `coverage` is a
    sum modulo 2**64 that tells, over all tasks, whether each byte was read exactly once (tfy.shares).
    """

    records: int = 0
    epochs: int = 0
    epoch_records: int = 0
    epoch_bytes: int = 0
    coverage: int = 0
    uneven: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What one task's program has done so far, as its own process counted it."""

    steps: int = 0
    bytes_read: int = 0
    reads: int = 0
    metrics: tuple[Metric, ...] = ()
    checkpoint: str | None = None
    input: InputProgress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """The current state of one task. Times are seconds since the epoch.

    `node_web` is the web address (`host:port`) of the NodeManager that has its logs, `rdma_links` the kinds
    of RDMA link that its host can use (empty where nobody looked).
    """

    task: str
    state: TaskState
    host: str | None = None
    port: int | None = None
    node_web: str | None = None
    container_id: str | None = None
    rdma_links: tuple[str, ...] = ()
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    error: str | None = None
    progress: Progress = Progress()


def close_task(record: TaskRecord, ended: float) -> TaskRecord:
    """A task of which nothing more will be heard: its node went with the job."""
    if record.state.final or record.port is None:
        return record
    return replace(record, state=TaskState.LOST, error="ended with the job", ended=ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopOrder:
    """The driver's message to every node: end the program in good order.

    With `evaluating` the evaluator goes on: it is told that training is done, and ends by itself.
    """

    reason: str
    evaluating: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """The whole job at one moment: status.json while it runs, result.json when it has ended.

    `cause` is the first cause of a failure, `could_not_start` says that the job never ran.
    """

    submission_id: str
    application_id: str
    name: str
    state: JobState
    phase: str
    tasks: tuple[TaskRecord, ...]
    updated: float
    started: float
    ended: float | None = None
    spark_application_id: str | None = None
    input: InputReport | None = None
    cause: str | None = None
    could_not_start: bool = False


T = TypeVar("T")


def to_json(record: object) -> bytes:
    """Any record of this module as JSON."""
    return msgspec.json.encode(record)


def from_json(data: bytes, record_type: type[T]) -> T:
    """A record from JSON; `InternalError` where the other side wrote something else."""
    try:
        return msgspec.json.decode(data, type=record_type)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise InternalError(f"not a {record_type.__name__}: {error}") from error
