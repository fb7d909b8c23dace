"""The keys of job.yaml as data: what is known, what comes later, defaults and limits.

`tfy.load` reads by these tables, and the docs are tested against them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

DEFAULT_QUEUE = "default"
DEFAULT_INSTANCES = 1
DEFAULT_VCORES = 1
DEFAULT_DRIVER_MEMORY_MIB = 1024
DEFAULT_START_TIMEOUT_S = 10 * 60
DEFAULT_TOTAL_TIMEOUT_S = 24 * 3600
DEFAULT_CHECKPOINT_KEEP = 3

LATER_STRATEGIES = ("multi_worker_mirrored", "none")
LATER_INPUT_MODES = ("spark",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of one mapping: accepted, not supported yet, and refused for a reason of their own."""

    known: tuple[str, ...]
    later: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()


_MANY = Keys(known=("instances", "memory", "vcores"), later=("gpus", "node_label"))
_ONE = Keys(
    known=("memory", "vcores"),
    later=("gpus", "node_label"),
    refused=(("instances", "there is always exactly one"),),
)

JOB_KEYS: Mapping[str, Keys] = MappingProxyType(
    {
        "": Keys(
            known=(
                *("name", "program", "args", "files", "python_env", "queue", "strategy"),
                *("tasks", "input", "checkpoint", "timeouts", "env"),
            ),
            later=("module", "rdma", "tensorboard", "rounds", "spark"),
        ),
        "tasks": Keys(known=("ps", "worker", "chief", "driver"), later=("evaluator",)),
        "tasks.ps": _MANY,
        "tasks.worker": _MANY,
        "tasks.chief": _ONE,
        "tasks.driver": _ONE,
        "input": Keys(known=("mode", "paths"), later=("shard", "unequal")),
        "checkpoint": Keys(known=("dir", "keep")),
        "timeouts": Keys(known=("start", "total")),
    }
)
"""Key path of a mapping → its keys. `env` is not here: its keys are the user's."""


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
        "driver": MinimumMemory(1024, "Skein's JVM, Spark's JVM and Python share it"),
    }
)

# Set by YARN, Skein or tfy in every container: a job that could change them would break itself.
OWNED_ENV_NAMES = (
    "CONTAINER_ID",
    "GRPC_ENABLE_FORK_SUPPORT",
    "HADOOP_CONF_DIR",
    "HADOOP_TOKEN_FILE_LOCATION",
    "HOME",
    "PYTHONPATH",
    "TF_CONFIG",
    "TF_GRPC_REUSE_PORT",
)
OWNED_ENV_PREFIXES = ("TFY_", "SKEIN_")
