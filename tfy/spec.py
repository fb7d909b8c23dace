"""JobSpec: what job.yaml says, validated, with every default filled in.

Built by `tfy.load` only. Memory is in MiB and is that of the whole YARN container,
durations are in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Strategy = Literal["parameter_server", "multi_worker_mirrored", "none"]
TaskType = Literal["chief", "worker", "ps", "evaluator"]
Rdma = Literal["off", "preferred", "required"]
Shard = Literal["auto", "file", "record"]
Unequal = Literal["repeat", "drop", "refuse"]

DEFAULT_STRATEGY: Strategy = "parameter_server"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """The size of one YARN container."""

    memory_mib: int
    vcores: int
    gpus: int = 0
    node_label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """One task type of the training program: how many, and the container of each."""

    type: TaskType
    instances: int
    container: ContainerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """The TFRecord files that the tasks read themselves (InputMode.TENSORFLOW)."""

    mode: Literal["tensorflow"]
    paths: tuple[str, ...]
    shard: Shard = "auto"
    unequal: Unequal = "repeat"
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSpec:
    """Where checkpoints go, and how many are kept."""

    dir: str
    keep: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSpec:
    """Where models to serve go, and how many versions are kept."""

    dir: str
    keep: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeoutsSpec:
    """Limits in seconds: `start` until every task is running, `total` until the job has ended,
    `evaluate` for the evaluator's last checkpoint once training has ended.
    """

    start_s: int
    total_s: int
    evaluate_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One training job. Paths in `program` and `files` are relative to `base_dir`."""

    source: Path
    base_dir: Path
    name: str
    program: str
    args: tuple[str, ...]
    files: tuple[str, ...]
    queue: str
    strategy: Strategy
    tasks: tuple[TaskSpec, ...]
    driver: ContainerSpec
    rdma: Rdma
    input: InputSpec | None
    checkpoint: CheckpointSpec | None
    export: ExportSpec | None
    timeouts: TimeoutsSpec
    env: tuple[tuple[str, str], ...]
