"""What a task gets of its host's devices: its GPUs, and NCCL's network between those of several tasks."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfy.contract import SIDE_TASKS, task_name
from tfy.errors import StartError
from tfy.plan_model import Plan
from tfy.runtime.gpus import TaskGpus, take_gpus
from tfy.runtime.rdma import SYSFS, Port, explain_missing, find_ports, make_rdma_env, parse_nccl_log

_LOG = logging.getLogger(__name__)

_NO_RDMA = (
    "RDMA: nothing of this task can use it (rdma: preferred): only NCCL does, between GPUs of several tasks"
)
# NCCL names its network when its first communicator is made.
_LOG_HEAD_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Devices:
    """Variables for the program's environment, and what its log begins with. The GPUs are held."""

    env: Mapping[str, str]
    sentences: tuple[str, ...]
    gpus: TaskGpus


def list_collective_tasks(plan: Plan, task_type: str) -> tuple[str, ...]:
    """The tasks that a task of this type may talk to by NCCL, itself among them; none where it does not.

    Under parameter_server tensors go by gRPC, and side tasks take no part in collectives.
    """
    having = [
        task
        for task in plan.tasks
        if task.container.gpus and task.type not in SIDE_TASKS and plan.strategy != "parameter_server"
    ]
    if sum(task.instances for task in having) < 2 or task_type not in {task.type for task in having}:
        return ()
    return tuple(task_name(task.type, index) for task in having for index in range(task.instances))


def find_rdma_ports(plan: Plan, task_type: str, root: Path = SYSFS) -> tuple[Port, ...]:
    """The host's RDMA ports, where the task has a use for them.

    Raises `StartError` where the job requires RDMA and this host has no active port.
    """
    if plan.rdma == "off" or not list_collective_tasks(plan, task_type):
        return ()
    ports = find_ports(root)
    missing = explain_missing(plan.rdma, plan.task(task_type).container.gpus, ports)
    if missing is not None:
        raise StartError(missing, hint="tasks.worker.node_label keeps tasks to hosts that have one")
    return ports


def take_devices(
    plan: Plan,
    task_type: str,
    container_id: str,
    environ: Mapping[str, str],
    ports: tuple[Port, ...],
    links: Mapping[str, tuple[str, ...]],
) -> Devices:
    """The devices of one task, held until `gpus.release` or the end of this process.

    `ports` are this host's, `links` what each of the collective's tasks said of its host. What job.yaml's
    `env` sets stands. Raises `StartError` where the host has fewer GPUs than were asked for, or where RDMA
    is required and the tasks' hosts have no link in common.
    """
    own_env = dict(plan.env)
    asked = plan.task(task_type).container.gpus
    gpus = take_gpus(asked, container_id, environ, own_env)
    nccl: dict[str, str] = {}
    network = _NO_RDMA if plan.rdma != "off" else ""
    if list_collective_tasks(plan, task_type):
        nccl, network = make_rdma_env(plan.rdma, asked, ports, links)
    env = {**gpus.env, **{name: value for name, value in nccl.items() if name not in own_env}}
    said = (gpus.sentence if asked else "", network)
    return Devices(env, tuple(sentence for sentence in said if sentence), gpus)


def note_transport(log: Path) -> None:
    """Ends a program's log with what NCCL said there of its network, if anything: asked is not yet used."""
    try:
        with log.open("rb") as source:
            transport = parse_nccl_log(source.read(_LOG_HEAD_BYTES).decode(errors="replace"))
        if transport is not None:
            with log.open("a") as sink:
                sink.write(f"tfy: {transport.sentence}\n")
    except OSError as error:
        _LOG.warning("%s: NCCL's network is not noted: %s", log.name, error)
