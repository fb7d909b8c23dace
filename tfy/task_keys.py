"""The keys under `tasks` of job.yaml, and which task types each strategy has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tfy.spec import Strategy, TaskType

DEFAULT_INSTANCES = 1
DEFAULT_VCORES = 1
DEFAULT_GPUS = 0
DEFAULT_DRIVER_MEMORY_MIB = 1024


_WORDS = ("required", "implied", "none", "see below", "as worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key: what it is when the file does not give it, an example as YAML, and what it means.

    `default` is "required" where the file must give it; a key that holds a mapping has no example.
    """

    name: str
    default: str
    example: str = ""
    text: str

    @property
    def default_is_told(self) -> bool:
        """Whether the default is told in words, which no file could give."""
        return self.default in _WORDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of one mapping: accepted, not supported yet, and refused for a reason of their own."""

    entries: tuple[Key, ...]
    later: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        """The names of the accepted keys."""
        return tuple(entry.name for entry in self.entries)


@dataclass(frozen=True, slots=True)
class MinimumMemory:
    """The least memory of a container, and what needs it."""

    mib: int
    reason: str


MINIMUM_MEMORY: Mapping[str, MinimumMemory] = MappingProxyType(
    {
        "worker": MinimumMemory(1536, "Spark's JVM heap (512 MiB), Python and TensorFlow share it"),
        "chief": MinimumMemory(1024, "Python and TensorFlow share it with the program's data"),
        "ps": MinimumMemory(768, "Python and TensorFlow share it with the variables"),
        "evaluator": MinimumMemory(1024, "Python and TensorFlow share it with the program's data"),
        "driver": MinimumMemory(1024, "Skein's JVM, Spark's JVM and Python share it"),
    }
)


def _container(task_type: str, memory: str, vcores: str, example: str) -> tuple[Key, ...]:
    least = MINIMUM_MEMORY[task_type].mib
    return (
        Key(
            name="memory",
            default=memory,
            example=example,
            text=f"the whole container's, at least {least} MiB: {MINIMUM_MEMORY[task_type].reason}",
        ),
        Key(name="vcores", default=vcores, example="1", text="virtual cores of each container"),
    )


_GPUS = Key(
    name="gpus",
    default=str(DEFAULT_GPUS),
    example="1",
    text="GPUs of each container (YARN's `yarn.io/gpu`); the program sees these and no others",
)
_LABEL = Key(
    name="node_label",
    default="none",
    example="gpu",
    text="only by NodeManagers with this label of YARN's",
)


def _instances(text: str) -> Key:
    return Key(name="instances", default=str(DEFAULT_INSTANCES), example="2", text=text)


_ALWAYS_ONE = (("instances", "there is always exactly one"),)

TASK_KEYS: Mapping[str, Keys] = MappingProxyType(
    {
        "tasks": Keys(
            entries=(
                Key(
                    name="worker",
                    default="required",
                    text="computes; each in a Spark executor of its own. Not required under `none`",
                ),
                Key(
                    name="ps",
                    default="required",
                    text="holds variables; under `parameter_server` and `none` only",
                ),
                Key(
                    name="chief",
                    default="implied",
                    text="under `parameter_server` it runs the program; under `none` where you give it; "
                    "refused under `multi_worker_mirrored`",
                ),
                Key(
                    name="evaluator",
                    default="none",
                    text="runs the program too, outside the cluster spec, on the checkpoints as they "
                    "come; its trouble never ends the job",
                ),
                Key(
                    name="driver",
                    default="implied",
                    text="the coordinator: Skein's application master, tfy's driver and Spark's",
                ),
            )
        ),
        "tasks.worker": Keys(
            entries=(
                _instances("how many workers"),
                *_container("worker", "required", str(DEFAULT_VCORES), "2 GiB"),
                _GPUS,
                _LABEL,
            )
        ),
        "tasks.ps": Keys(
            entries=(
                _instances("how many parameter servers"),
                *_container("ps", "required", str(DEFAULT_VCORES), "1 GiB"),
                _GPUS,
                _LABEL,
            )
        ),
        "tasks.chief": Keys(
            entries=(*_container("chief", "as worker", "as worker", "2 GiB"), _GPUS, _LABEL),
            refused=_ALWAYS_ONE,
        ),
        "tasks.evaluator": Keys(
            entries=(*_container("evaluator", "required", str(DEFAULT_VCORES), "1 GiB"), _GPUS, _LABEL),
            refused=_ALWAYS_ONE,
        ),
        "tasks.driver": Keys(
            entries=(
                *_container("driver", "1 GiB", str(DEFAULT_VCORES), "1 GiB"),
                Key(
                    name="node_label",
                    default="none",
                    example="cpu",
                    text="only by NodeManagers with this label; services without one of their own follow it",
                ),
            ),
            refused=(*_ALWAYS_ONE, ("gpus", "the driver computes nothing")),
        ),
    }
)
"""Key path of a mapping → its keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyTasks:
    """The task types of a strategy: required, possible, and refused for a reason.

    `evaluator` and `driver` are possible under all.
    """

    required: tuple[TaskType, ...] = ()
    possible: tuple[TaskType, ...] = ()
    refused: tuple[tuple[TaskType, str], ...] = ()


STRATEGY_TASKS: Mapping[Strategy, StrategyTasks] = MappingProxyType(
    {
        "parameter_server": StrategyTasks(required=("ps", "worker"), possible=("chief",)),
        "multi_worker_mirrored": StrategyTasks(
            required=("worker",),
            refused=(
                ("chief", "under multi_worker_mirrored worker:0 leads"),
                ("ps", "multi_worker_mirrored has no parameter servers: every worker holds all variables"),
            ),
        ),
        "none": StrategyTasks(possible=("chief", "worker", "ps")),
    }
)
