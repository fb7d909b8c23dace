"""Which GPUs a task gets: never another's, never more than asked, none where none was asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.gpu_host import make_smi_xml, write_smi
from tests.waiting import wait_until
from tfy import contract
from tfy.errors import StartError
from tfy.runtime import gpus
from tfy.runtime.gpus import Gpu, NodeManagerFacts

CONTAINER = "container_e17_1700000000000_0001_01_000002"
A, B, C = Gpu("GPU-a", 0), Gpu("GPU-b", 1), Gpu("GPU-c", 2)
LOCKED_AWAY = NodeManagerFacts(assigned=frozenset({1}))


def assigned_answer(wrapped: bool = True) -> bytes:
    record = {
        "totalGpuDevices": [{"index": 0, "minorNumber": 0}, {"index": 1, "minorNumber": 1}],
        "assignedGpuDevices": [
            {"index": 0, "minorNumber": 0, "containerId": CONTAINER[:-1] + "3"},
            {"index": 1, "minorNumber": 1, "containerId": CONTAINER},
        ],
    }
    return json.dumps({"nmGpuResourceInfo": record} if wrapped else record).encode()


@pytest.mark.parametrize(
    ("asked", "visible", "facts", "chosen"),
    [
        # One host, no isolation: any will do, the free ones first.
        (1, (A, B, C), NodeManagerFacts(), (A, B, C)),
        (1, (Gpu("GPU-a", 0, busy=True), B), NodeManagerFacts(), (B, Gpu("GPU-a", 0, busy=True))),
        # The container sees only its own, whatever their minors are.
        (1, (B,), LOCKED_AWAY, (B,)),
        (1, (Gpu("GPU-b", None),), LOCKED_AWAY, (Gpu("GPU-b", None),)),
        # nvidia-smi shows all of them, the NodeManager says which is ours.
        (1, (A, B, C), LOCKED_AWAY, (B,)),
        (3, (A, B, C), NodeManagerFacts(), (A, B, C)),
        # The administrator keeps the first from YARN.
        (1, (A, B, C), NodeManagerFacts(allowed=frozenset({1, 2})), (B, C)),
    ],
)
def test_choice(
    asked: int, visible: tuple[Gpu, ...], facts: NodeManagerFacts, chosen: tuple[Gpu, ...]
) -> None:
    assert gpus.choose_gpus(asked, visible, facts) == chosen


@pytest.mark.parametrize(
    ("visible", "allowed", "said"),
    [
        ((A,), None, r"2 GPUs asked, this container sees 1 \(nvidia-smi shows 1\)"),
        ((), None, r"2 GPUs asked, this container sees 0 \(nvidia-smi shows 0\)"),
        ((A, B), frozenset({1}), r"2 GPUs asked, this container sees 1 \(nvidia-smi shows 2\)"),
    ],
)
def test_too_few_are_said_with_both_numbers(
    visible: tuple[Gpu, ...], allowed: frozenset[int] | None, said: str
) -> None:
    with pytest.raises(StartError, match=said):
        gpus.choose_gpus(2, visible, NodeManagerFacts(allowed=allowed))


@pytest.mark.parametrize(
    ("asked", "uuids", "own_env", "env"),
    [
        (0, None, {}, {"CUDA_VISIBLE_DEVICES": "-1"}),
        (2, ("GPU-a", "GPU-b"), {}, {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}),
        (1, None, {}, {}),
        (0, None, {"CUDA_VISIBLE_DEVICES": "0"}, {}),
        (1, ("GPU-a",), {"CUDA_VISIBLE_DEVICES": ""}, {}),
    ],
)
def test_environment(
    asked: int, uuids: tuple[str, ...] | None, own_env: dict[str, str], env: dict[str, str]
) -> None:
    assert gpus.make_gpu_env(asked, uuids, own_env) == env


@pytest.mark.parametrize("wrapped", [True, False])
def test_assigned_devices_are_those_of_this_container(wrapped: bool) -> None:
    assert gpus.parse_assigned(assigned_answer(wrapped), CONTAINER) == {1}


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>",
        b"[]",
        # Hadoop 3.5.0 without the GPU plugin.
        b'{"nmResourceInfo":{"resourceValue":0}}',
        b'{"RemoteException":{"message":"Linux Container Executor is not configured"}}',
        b'{"nmGpuResourceInfo":{"assignedGpuDevices":null}}',
    ],
)
def test_an_answer_without_devices_assigns_none(answer: bytes) -> None:
    assert gpus.parse_assigned(answer, CONTAINER) == frozenset()


@pytest.mark.parametrize(
    ("setting", "minors"),
    [("auto", None), ("", None), ("0:1, 1:3,", {1, 3}), ("0", None), ("0:x", None)],
)
def test_allowed_devices(setting: str, minors: set[int] | None) -> None:
    assert gpus.parse_allowed(setting) == minors


def test_devices_are_read_from_nvidia_smi() -> None:
    xml = make_smi_xml(("GPU-a", "GPU-b"), busy=("GPU-b",))
    assert gpus.parse_gpus(xml) == (Gpu("GPU-a", 0), Gpu("GPU-b", 1, busy=True))
    assert gpus.parse_gpus(xml.replace("<minor_number>0<", "<minor_number>N/A<"))[0] == Gpu("GPU-a", None)
    for other in ("NVIDIA-SMI has failed", xml.replace("<uuid>GPU-a</uuid>", "")):
        with pytest.raises(StartError, match="cannot be listed"):
            gpus.parse_gpus(other)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'No devices were found'; exit 6", "ended with 6 and said: No devices were found"),
        ("exit 9", "ended with 9 and said: nothing"),
    ],
)
def test_a_failing_nvidia_smi_is_quoted(script: str, said: str, tmp_path: Path) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text(f"#!/bin/sh\n{script}\n")
    smi.chmod(0o755)
    with pytest.raises(StartError, match=said):
        gpus.list_gpus(str(smi), os.environ)


HOLDER = """
import sys
from tfy.runtime.gpus import Gpu, hold_gpus
held = hold_gpus(int(sys.argv[1]), tuple(Gpu(uuid, None) for uuid in sys.argv[2:]), 0)
print(*held.uuids, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def devices() -> tuple[Gpu, ...]:
    """Three devices that no other test run knows."""
    run = uuid.uuid4().hex
    return tuple(Gpu(f"GPU-{run}-{number}", number) for number in range(3))


@pytest.fixture
def other_task(devices: tuple[Gpu, ...]) -> Iterator[subprocess.Popen[str]]:
    """Another task's node on this host, which holds two of the devices."""
    command = [sys.executable, "-c", HOLDER, "2", *(gpu.uuid for gpu in devices)]
    node = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert node.stdout is not None
    assert node.stdout.readline().split() == [gpu.uuid for gpu in devices[:2]]
    yield node
    node.kill()
    node.communicate()


def test_two_tasks_on_a_host_never_share_a_gpu(
    devices: tuple[Gpu, ...], other_task: subprocess.Popen[str]
) -> None:
    held = gpus.hold_gpus(1, devices, 0)
    assert held.uuids == (devices[2].uuid,)
    held.release()
    with pytest.raises(StartError, match=r"2 GPUs asked, 1 of this host's 3 are free"):
        gpus.hold_gpus(2, devices, 0)
    # The part that was held meanwhile is free again.
    gpus.hold_gpus(1, devices, 0).release()


def test_a_killed_node_holds_nothing(devices: tuple[Gpu, ...], other_task: subprocess.Popen[str]) -> None:
    killer = threading.Timer(0.2, other_task.kill)
    killer.start()
    held = gpus.hold_gpus(3, devices, 30)
    assert held.uuids == tuple(gpu.uuid for gpu in devices)
    held.release()
    wait_until(lambda: other_task.poll() is not None, limit_s=10, what="the other node's end")


class PlayedNodeManager(BaseHTTPRequestHandler):
    """A NodeManager's web address, as the LinuxContainerExecutor makes it answer."""

    smi = ""

    def do_GET(self) -> None:
        if self.path == "/ws/v1/node/resources/yarn.io%2Fgpu":
            body = assigned_answer()
        else:
            value = self.smi if "path-to-discovery-executables" in self.path else "auto"
            body = (
                f"<configuration><property><name>x</name><value>{value}</value></property></configuration>"
            ).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


@pytest.fixture
def node_manager(tmp_path: Path, devices: tuple[Gpu, ...]) -> Iterator[dict[str, str]]:
    """The variables that a container of the played NodeManager has."""
    smi = write_smi(tmp_path / "nvidia", tuple(gpu.uuid for gpu in devices))
    handler = type("Handler", (PlayedNodeManager,), {"smi": str(smi.parent)})
    server = HTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield {"NM_HOST": "127.0.0.1", "NM_HTTP_PORT": str(server.server_port), "PATH": "/usr/bin:/bin"}
    server.shutdown()
    server.server_close()


def test_a_task_gets_the_device_that_the_node_manager_assigned(
    node_manager: dict[str, str], devices: tuple[Gpu, ...]
) -> None:
    taken = gpus.take_gpus(1, CONTAINER, {**node_manager, "http_proxy": "http://127.0.0.1:9"}, {})
    assert taken.env == {"CUDA_VISIBLE_DEVICES": devices[1].uuid}
    assert taken.sentence == f"GPUs: {devices[1].uuid}"
    taken.release()


def test_a_task_that_asked_for_none_sees_none_and_asks_no_one() -> None:
    taken = gpus.take_gpus(0, CONTAINER, {}, {})
    assert (taken.env, taken.sentence) == ({"CUDA_VISIBLE_DEVICES": "-1"}, "GPUs: none asked, none visible")
    taken.release()


def test_the_users_own_choice_stands() -> None:
    taken = gpus.take_gpus(1, CONTAINER, {}, {"CUDA_VISIBLE_DEVICES": "3"})
    assert taken.env == {}
    assert "CUDA_VISIBLE_DEVICES=3 by job.yaml" in taken.sentence


def test_nvidia_smi_is_looked_for_where_node_managers_look(tmp_path: Path) -> None:
    smi = write_smi(tmp_path / "nvidia", ("GPU-a",))
    assert gpus.find_smi(str(smi), "") == str(smi)
    assert gpus.find_smi(str(smi.parent), "") == str(smi)
    assert gpus.find_smi("", str(smi.parent)) == str(smi)
    # A setting that leads nowhere, as on a host that has none.
    assert gpus.find_smi("/nowhere/nvidia-smi", str(smi.parent)) == str(smi)


def test_sparks_discovery_script_counts() -> None:
    script = Path(gpus.__file__).parent / "find_gpus.sh"
    done = subprocess.run(
        [script], env={contract.ENV_GPUS: "2"}, capture_output=True, text=True, timeout=30, check=True
    )
    assert json.loads(done.stdout) == {"name": "gpu", "addresses": ["0", "1"]}
