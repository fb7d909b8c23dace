"""A node and a real program as its child; the rendezvous is in memory."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.gpu_host import write_smi
from tests.plans import EVALUATOR, make_small_plan
from tests.waiting import wait_until
from tfy import contract
from tfy.records import StopOrder, TaskRecord
from tfy.runtime import proctree
from tfy.runtime.gpus import Gpu, hold_gpus
from tfy.runtime.identity import ContainerIdentity, Task
from tfy.runtime.node import Node, NodeSettings
from tfy.runtime.rendezvous import MemoryRendezvous
from tfy.states import TaskState

CLUSTER = {"chief": ["h:1"], "worker": ["h:2", "h:3"], "ps": ["h:4"]}


@pytest.fixture
def make_node(tmp_path: Path) -> Callable[..., tuple[Node, MemoryRendezvous]]:
    def make(
        program: str, task_type: str = "chief", *, gpus: int = 0, path: str = "/usr/bin:/bin"
    ) -> tuple[Node, MemoryRendezvous]:
        (tmp_path / "program").mkdir()
        (tmp_path / "program" / "train.py").write_text(program)
        (tmp_path / "logs").mkdir()
        plan = make_small_plan(python=sys.executable)
        plan = replace(
            plan,
            tasks=tuple(
                replace(task, container=replace(task.container, gpus=gpus))
                if task.type == task_type
                else task
                for task in (*plan.tasks, EVALUATOR)
            ),
        )
        settings = NodeSettings(
            plan=plan,
            container=ContainerIdentity(
                container_id="container_1",
                host="127.0.0.2",
                work_dir=tmp_path,
                log_dir=tmp_path / "logs",
                application_id="application_1_1",
                appmaster="127.0.0.2:1",
                hadoop_user="me",
                node_web="127.0.0.2:8042",
            ),
            task=Task(task_type, 0),
            environ={"PATH": path, "SKEIN_KEY": "secret", "CLASSPATH": "x", "CONTAINER_ID": "c"},
            # The cluster of the tests runs below this process too.
            spared=frozenset(proctree.list_descendants(os.getpid())),
        )
        rendezvous = MemoryRendezvous()
        return Node(settings, rendezvous), rendezvous

    return make


def record_of(rendezvous: MemoryRendezvous, task: str = "chief:0") -> TaskRecord | None:
    data = rendezvous.get(contract.task_key(task))
    return None if data is None else contract.from_json(data, TaskRecord)


def test_runs_the_program_with_its_environment(
    make_node: Callable[[str], tuple[Node, MemoryRendezvous]], tmp_path: Path
) -> None:
    node, rendezvous = make_node("import json, os; json.dump(dict(os.environ), open('env.json', 'w'))")
    rendezvous.put(contract.KEY_CLUSTER, json.dumps(CLUSTER).encode())
    assert node.run() == 0
    env = json.loads((tmp_path / "work" / "env.json").read_text())
    assert json.loads(env["TF_CONFIG"]) == {"cluster": CLUSTER, "task": {"type": "chief", "index": 0}}
    assert (env["TFY_TASK_TYPE"], env["TFY_TASK_INDEX"], env["FLAG"]) == ("chief", "0", "1")
    assert env["CONTAINER_ID"] == "c"
    assert not any(name.startswith(("SKEIN_", "CLASSPATH")) for name in env)
    record = record_of(rendezvous)
    assert record is not None
    assert (record.state, record.exit_code, record.error) == (TaskState.SUCCEEDED, 0, None)
    assert record.host == "127.0.0.2" and record.port
    assert record.node_web == "127.0.0.2:8042"


def test_gpus_are_free_once_the_program_has_ended(
    make_node: Callable[..., tuple[Node, MemoryRendezvous]], tmp_path: Path
) -> None:
    devices = tuple(f"GPU-{uuid.uuid4()}" for _ in range(2))
    path = f"{write_smi(tmp_path / 'smi', devices).parent}:/bin"
    node, rendezvous = make_node("import os; print(os.environ['CUDA_VISIBLE_DEVICES'])", gpus=2, path=path)
    rendezvous.put(contract.KEY_CLUSTER, json.dumps(CLUSTER).encode())
    assert node.run() == 0
    assert ",".join(devices) in (tmp_path / "logs" / "chief-0.log").read_text()
    # Its container may live on, as may this process.
    hold_gpus(2, tuple(Gpu(device, None) for device in devices), 0).release()


def test_the_times_of_the_log_reach_to_its_end(
    make_node: Callable[[str], tuple[Node, MemoryRendezvous]], tmp_path: Path
) -> None:
    node, rendezvous = make_node("print('first', flush=True); raise SystemExit('and last')")
    rendezvous.put(contract.KEY_CLUSTER, json.dumps(CLUSTER).encode())
    began = time.time()
    assert node.run() == 1
    log, times = tmp_path / "logs" / "chief-0.log", tmp_path / "logs" / "chief-0.times"
    moment, size = times.read_text().splitlines()[-1].split()
    assert int(size) == log.stat().st_size == len("first\nand last\n")
    assert began - 0.01 <= float(moment) <= time.time() + 0.01


@pytest.mark.parametrize(
    ("program", "code", "telling"),
    [
        ("raise ValueError('in its last line')", 1, "ValueError: in its last line"),
        ("import atexit; atexit.register(lambda: 1/0)", 1, "exit code 1: ZeroDivisionError"),
        ("raise SystemExit('I give up: no data')", 1, "exit code 1: I give up: no data"),
        ("raise ValueError('two\\nlines')", 1, "exit code 1: ValueError: two\nTraceback"),
        ("import os; print('last'); os.sys.stdout.flush(); os._exit(3)", 3, "last"),
        (
            "import os; os.kill(os.getpid(), 9)",
            1,
            "killed by signal 9 (out of memory? its container has 1 GiB)",
        ),
    ],
)
def test_a_failing_program_fails_its_task(
    make_node: Callable[[str], tuple[Node, MemoryRendezvous]], program: str, code: int, telling: str
) -> None:
    node, rendezvous = make_node(program)
    rendezvous.put(contract.KEY_CLUSTER, json.dumps(CLUSTER).encode())
    assert node.run() == code
    record = record_of(rendezvous)
    assert record is not None and record.error is not None
    assert record.state is TaskState.FAILED
    assert telling in record.error


def test_stops_when_the_driver_says_so(
    make_node: Callable[[str], tuple[Node, MemoryRendezvous]],
) -> None:
    node, rendezvous = make_node("import time; time.sleep(600)")
    rendezvous.put(contract.KEY_CLUSTER, json.dumps(CLUSTER).encode())

    def is_running() -> bool:
        record = record_of(rendezvous)
        return record is not None and record.state is TaskState.RUNNING

    def stop() -> None:
        wait_until(is_running, limit_s=30, what="the program runs")
        rendezvous.put(contract.KEY_STOP, contract.to_json(StopOrder(reason="enough")))

    stopper = threading.Thread(target=stop)
    stopper.start()
    assert node.run() == 0
    stopper.join()
    record = record_of(rendezvous)
    assert record is not None
    assert record.state is TaskState.STOPPED


def test_a_job_that_ends_before_it_began_stops_its_nodes(
    make_node: Callable[[str], tuple[Node, MemoryRendezvous]],
) -> None:
    node, rendezvous = make_node("raise SystemExit('never started')")
    rendezvous.put(contract.KEY_STOP, contract.to_json(StopOrder(reason="someone is missing")))
    assert node.run() == 0
    record = record_of(rendezvous)
    assert record is not None
    assert record.state is TaskState.STOPPED


# Ends with 7 once training is done.
EVALUATING = """
import os, pathlib, time
while not pathlib.Path(os.environ["TFY_DONE"]).exists():
    time.sleep(0.05)
raise SystemExit(7)
"""


@pytest.mark.parametrize(
    ("task_type", "state", "code"),
    [("evaluator", TaskState.FAILED, 7), ("chief", TaskState.STOPPED, -15)],
)
def test_when_training_is_done_the_evaluator_goes_on_and_all_others_stop(
    make_node: Callable[..., tuple[Node, MemoryRendezvous]], task_type: str, state: TaskState, code: int
) -> None:
    node, rendezvous = make_node(EVALUATING, task_type)
    rendezvous.put(contract.KEY_CLUSTER, json.dumps(CLUSTER).encode())
    order = StopOrder(reason="training is done", evaluating=True)
    rendezvous.put(contract.KEY_STOP, contract.to_json(order))
    node.run()
    record = record_of(rendezvous, f"{task_type}:0")
    assert record is not None
    assert (record.state, record.exit_code) == (state, code)
