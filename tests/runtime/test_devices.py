"""What a task's program is told of its host's devices, for each strategy and each setting of rdma."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from tests.gpu_host import write_smi
from tests.plans import make_small_plan
from tfy.errors import StartError
from tfy.plan_model import Plan
from tfy.runtime.devices import find_rdma_ports, list_collective_tasks, note_transport, take_devices
from tfy.runtime.rdma import ROCE, list_links

DATA = Path(__file__).parent.parent / "data"


def plan_of(strategy: str, rdma: str, gpus: dict[str, int]) -> Plan:
    """A chief, 2 workers and a ps, with these GPUs."""
    plan = make_small_plan()
    tasks = tuple(
        replace(task, container=replace(task.container, gpus=gpus.get(task.type, 0))) for task in plan.tasks
    )
    return replace(plan, strategy=strategy, rdma=rdma, tasks=tasks)


@pytest.mark.parametrize(
    ("strategy", "gpus", "task_type", "talking"),
    [
        ("multi_worker_mirrored", {"worker": 1}, "worker", ("worker:0", "worker:1")),
        ("none", {"worker": 1, "chief": 2}, "worker", ("chief:0", "worker:0", "worker:1")),
        ("none", {"worker": 1}, "ps", ()),
        ("none", {"chief": 8}, "chief", ()),
        ("none", {}, "worker", ()),
        ("parameter_server", {"worker": 1}, "worker", ()),
    ],
)
def test_who_talks_by_nccl(
    strategy: str, gpus: dict[str, int], task_type: str, talking: tuple[str, ...]
) -> None:
    assert list_collective_tasks(plan_of(strategy, "preferred", gpus), task_type) == talking


def test_required_fails_at_the_start_where_the_host_has_nothing() -> None:
    plan = plan_of("multi_worker_mirrored", "required", {"worker": 1})
    with pytest.raises(StartError, match=r"mlx5_0:1 is DOWN"):
        find_rdma_ports(plan, "worker", DATA / "sysfs_down")
    assert list_links(find_rdma_ports(plan, "worker", DATA / "sysfs_roce")) == (ROCE,)
    # A task without GPUs has no use for it, nor has one of a job that does not ask.
    assert find_rdma_ports(plan, "ps", DATA / "sysfs_down") == ()
    assert find_rdma_ports(replace(plan, rdma="off"), "worker", DATA / "sysfs_roce") == ()


def test_a_gpu_task_gets_its_device_and_nccls_settings(tmp_path: Path) -> None:
    plan = plan_of("multi_worker_mirrored", "preferred", {"worker": 1})
    plan = replace(plan, env=(("NCCL_DEBUG", "WARN"),))
    device = f"GPU-{uuid.uuid4()}"
    environ = {"PATH": str(write_smi(tmp_path, (device,)).parent) + ":/bin"}
    ports = find_rdma_ports(plan, "worker", DATA / "sysfs_roce")
    devices = take_devices(
        plan, "worker", "container_1", environ, ports, {"worker:0": (ROCE,), "worker:1": (ROCE,)}
    )
    devices.gpus.release()
    assert devices.env["CUDA_VISIBLE_DEVICES"] == device
    assert devices.env["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_1:1"
    # The user's own word stands.
    assert "NCCL_DEBUG" not in devices.env
    assert devices.sentences == (
        f"GPUs: {device}",
        "NCCL: asked for RDMA over RoCE by mlx5_0:1, mlx5_1:1 (rdma: preferred)",
    )


@pytest.mark.parametrize(
    ("strategy", "rdma", "said"),
    [
        ("parameter_server", "off", ()),
        (
            "parameter_server",
            "preferred",
            (
                "RDMA: nothing of this task can use it (rdma: preferred): "
                "only NCCL does, between GPUs of several tasks",
            ),
        ),
    ],
)
def test_a_task_without_gpus_sees_none(strategy: str, rdma: str, said: tuple[str, ...]) -> None:
    devices = take_devices(plan_of(strategy, rdma, {}), "ps", "container_1", {}, (), {})
    assert devices.env == {"CUDA_VISIBLE_DEVICES": "-1"}
    assert devices.sentences == said


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("roce.log", "tfy: NCCL uses RDMA (IB) by mlx5_10:1/RoCE, mlx5_11:1/RoCE\n"),
        ("no_device.log", "tfy: NCCL uses TCP (Socket) by ens3:10.0.0.1<0>\n"),
        (None, ""),
    ],
)
def test_a_log_ends_with_what_nccl_used(log: str | None, said: str, tmp_path: Path) -> None:
    before = (DATA / "nccl_logs" / log).read_text() if log else "step 1\n"
    path = tmp_path / "worker-0.log"
    path.write_text(before)
    note_transport(path)
    assert path.read_text() == before + said
    note_transport(tmp_path / "none.log")
