"""What a job tells of itself, as frozen records that travel as JSON.

Task records go from the nodes to the driver, stop orders back, and the whole job's report from the
driver to the client.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tfy.shares import InputReport
from tfy.states import JobState, TaskState


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
