"""The `tasks` of job.yaml → TaskSpecs, by the rules of the strategy."""

from __future__ import annotations

from dataclasses import replace

from tfy import task_keys
from tfy.job_values import check_node_label
from tfy.spec import ContainerSpec, Strategy, TaskSpec, TaskType
from tfy.task_keys import MINIMUM_MEMORY, STRATEGY_TASKS, TASK_KEYS
from tfy.units import format_memory, parse_memory_mib
from tfy.yaml_fields import Fields

# What stands for a value that was refused while the rest of the file is read: never used, since then
# there is a problem to raise.
_REFUSED = ContainerSpec(memory_mib=0, vcores=task_keys.DEFAULT_VCORES)
_USUAL_DRIVER = ContainerSpec(memory_mib=task_keys.DEFAULT_DRIVER_MEMORY_MIB, vcores=task_keys.DEFAULT_VCORES)
_EXAMPLES: dict[TaskType, str] = {
    "ps": "ps: {memory: 1 GiB}",
    "worker": "worker: {instances: 2, memory: 2 GiB}",
}


def read_tasks(fields: Fields, strategy: Strategy | None) -> tuple[tuple[TaskSpec, ...], ContainerSpec]:
    """The tasks that the file gives or the strategy implies, and the driver's container.

    `strategy` is None where the file's was refused: then nothing is said of missing types.
    """
    rules = STRATEGY_TASKS[strategy] if strategy else None
    required = rules.required if rules else ()
    examples = ", ".join(_EXAMPLES[task_type] for task_type in required or ("worker",))
    fields.require("tasks", f"tasks: {{{examples}}}")
    tasks = fields.child("tasks", TASK_KEYS["tasks"])
    if tasks is None:
        return (), _REFUSED
    for task_type in required:
        tasks.require(task_type, _EXAMPLES[task_type])
    given = set(tasks.names())
    for refused, reason in rules.refused if rules else ():
        if refused in given:
            tasks.refuse(refused, f"not accepted: {reason}")
    if strategy == "none" and not given & {*rules.possible} if rules else False:
        fields.refuse("tasks", "no task runs the program; give at least one of chief, worker, ps")
    driver = _read_container(tasks.child("driver", TASK_KEYS["tasks.driver"]), "driver", _USUAL_DRIVER)
    return _read_types(tasks, given, strategy), driver


def _read_types(tasks: Fields, given: set[str], strategy: Strategy | None) -> tuple[TaskSpec, ...]:
    found: list[TaskSpec] = []
    worker = _read_task(tasks, "worker") if "worker" in given else None
    if "chief" in given or strategy == "parameter_server":
        usual = replace(worker.container, gpus=0, node_label=None) if worker else _REFUSED
        chief = tasks.child("chief", TASK_KEYS["tasks.chief"])
        if chief is not None and strategy == "none" and worker is None:
            chief.require("memory", "memory: 2 GiB")
        found.append(TaskSpec(type="chief", instances=1, container=_read_container(chief, "chief", usual)))
    if worker:
        found.append(worker)
    if "ps" in given:
        found.append(_read_task(tasks, "ps"))
    if "evaluator" in given:
        found.append(_read_task(tasks, "evaluator"))
    return tuple(found)


def _read_task(tasks: Fields, task_type: TaskType) -> TaskSpec:
    """A task type that has to say how much memory each of its containers needs."""
    task = tasks.child(task_type, TASK_KEYS[f"tasks.{task_type}"])
    instances = None
    if task is not None:
        task.require("memory", "memory: 2 GiB")
        if "instances" in TASK_KEYS[f"tasks.{task_type}"].known:
            instances = task.integer("instances", minimum=1)
    return TaskSpec(
        type=task_type,
        instances=instances or task_keys.DEFAULT_INSTANCES,
        container=_read_container(task, task_type, _REFUSED),
    )


def _read_container(task: Fields | None, name: str, default: ContainerSpec) -> ContainerSpec:
    if task is None:
        return default
    memory_mib = task.quantity("memory", parse_memory_mib, "a memory size")
    minimum = MINIMUM_MEMORY[name]
    if memory_mib is not None and memory_mib < minimum.mib:
        accepted = f"{minimum.mib} MiB or more ({minimum.reason})"
        task.refuse("memory", f"{format_memory(memory_mib)} is too little; accepted: {accepted}")
    vcores = task.integer("vcores", minimum=1)
    gpus = task.integer("gpus", minimum=0)
    return ContainerSpec(
        memory_mib=memory_mib or default.memory_mib,
        vcores=vcores or default.vcores,
        gpus=gpus if gpus is not None else default.gpus,
        node_label=task.text("node_label", check_node_label) or default.node_label,
    )
