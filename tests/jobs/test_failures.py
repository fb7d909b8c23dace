"""Jobs that fail say why, soon, and let go of everything."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import LocalHadoop
from tests.jobs.running import (
    SMALL_TASKS,
    TRAINING,
    ask_yarn,
    container_processes,
    follow,
    list_applications,
    read_status,
    run_tfy,
    write_job,
)
from tests.waiting import wait_until
from tfy.plan import SPARK_AM_HEAP_MIB, SPARK_AM_OVERHEAD_MIB

pytestmark = pytest.mark.cluster

FAILURE_LIMIT_S = 15.0

RAISES_IN_ITS_LAST_LINE = """
from tfy.runtime import current_job

def finish(result):
    raise ValueError(f"cannot finish {result}")

current_job().report(step=1, loss=0.5)
finish("the job")
"""


def test_a_program_that_raises_in_its_last_line_fails_the_job(cluster: LocalHadoop, tmp_path: Path) -> None:
    ended = run_tfy(
        cluster, "submit", str(write_job(tmp_path / "raises", RAISES_IN_ITS_LAST_LINE)), "--follow"
    )
    assert ended.code == 1
    screen = ended.stdout + ended.stderr
    assert "Traceback (most recent call last):" in screen
    assert "ValueError: cannot finish the job" in screen
    assert ended.stdout.splitlines()[-1].startswith("raises failed in ")
    status = read_status(cluster, "raises")
    assert status["state"] == "failed"
    assert status["cause"].startswith("chief:0 failed on 127.0.0.")
    skein = list_applications(cluster, status["submission_id"])[0]
    assert skein["finalStatus"] == "FAILED"
    assert "ValueError: cannot finish the job" in skein["diagnostics"]
    assert 'finish("the job")' in skein["diagnostics"]


def find_node(application_ids: list[str], task_type: str, task_index: int) -> int | None:
    """The process of a task's node, as soon as it exists."""
    for application_id in application_ids:
        for pid in container_processes(application_id):
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if command.endswith(b"-m\0tfy.runtime\0node\0") and {
                f"TFY_TASK_TYPE={task_type}".encode(),
                f"TFY_TASK_INDEX={task_index}".encode(),
            } <= set(environment):
                return pid
    return None


def test_a_worker_that_dies_before_it_registers_ends_the_job_soon(
    cluster: LocalHadoop, tmp_path: Path
) -> None:
    job = write_job(tmp_path / "unborn", "raise SystemExit('never runs')")
    with follow(cluster, job) as follower:
        follower.wait_for("starting Spark")
        submission_id = read_status(cluster, follower.application_id)["submission_id"]
        killed: list[int] = []

        def kill_it() -> bool:
            ids = [app["id"] for app in list_applications(cluster, submission_id)]
            pid = find_node(ids, "worker", 1)
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            return bool(killed)

        wait_until(kill_it, limit_s=120, what="the node of worker:1")
        code = follower.wait(FAILURE_LIMIT_S)
    assert code == 4, follower.stderr
    status = read_status(cluster, "unborn")
    assert "worker:1: its node ended" in status["cause"]
    (worker,) = [task for task in status["report"]["tasks"] if task["task"] == "worker:1"]
    assert worker["port"] is None


def test_a_parameter_server_that_is_gone_is_the_cause_and_not_who_missed_it(
    cluster: LocalHadoop, tmp_path: Path
) -> None:
    """Its node is killed, so no one of the job can tell: the driver must wait for YARN's word."""
    with follow(cluster, write_job(tmp_path / "lost-ps", TRAINING)) as follower:
        follower.wait_for("  total ")
        application_id = follower.application_id
        node = find_node([application_id], "ps", 0)
        assert node is not None
        os.kill(node, signal.SIGKILL)
        assert follower.wait(30) == 1
        assert follower.stdout.splitlines()[-1].startswith("lost-ps failed in ")
    cause = read_status(cluster, application_id)["cause"]
    assert cause.startswith("ps:0 was lost on 127.0.0."), cause
    wait_until(lambda: not container_processes(application_id), limit_s=30, what="no process left")


def test_workers_that_do_not_fit_end_at_the_start_limit(cluster: LocalHadoop, tmp_path: Path) -> None:
    """Two workers fill a node that has Spark's application master, but not one that has the driver."""
    worker_mib = (cluster.shape.node_memory_mib - SPARK_AM_HEAP_MIB - SPARK_AM_OVERHEAD_MIB) // 2
    settings = f"""
tasks:
  ps: {{instances: 1, memory: 768 MiB}}
  worker: {{instances: 4, memory: {worker_mib} MiB}}
  chief: {{memory: 1 GiB}}
timeouts: {{start: 60 s}}
"""
    wait_until(lambda: allocated_mib(cluster) == 0, limit_s=60, what="the cluster is free")
    began = time.monotonic()
    ended = run_tfy(cluster, "submit", str(write_job(tmp_path / "crowded", "pass", settings)), "--follow")
    assert ended.code == 4, ended.stderr
    assert time.monotonic() - began < 60 + 45
    last = ended.stdout.splitlines()[-1]
    assert "worker:3 not allocated: YARN granted 3 of 4 containers" in last
    assert "timeouts.start (1 min)" in last
    assert "chief:0, ps:0 not asked for yet" in last
    status = read_status(cluster, "crowded")
    ids = [app["id"] for app in list_applications(cluster, status["submission_id"])]
    wait_until(lambda: not any(map(container_processes, ids)), limit_s=30, what="no process left")
    wait_until(lambda: allocated_mib(cluster) == 0, limit_s=30, what="no memory in use")


def test_what_still_waits_in_the_queue_is_released_too(cluster: LocalHadoop, tmp_path: Path) -> None:
    """Two drivers use up the queue's share for application masters: neither Spark's can begin."""
    driver_mib = cluster.shape.node_memory_mib * 7 // 8
    settings = f"{SMALL_TASKS.rstrip()}\n  driver: {{memory: {driver_mib} MiB}}\ntimeouts: {{start: 40 s}}\n"
    wait_until(lambda: allocated_mib(cluster) == 0, limit_s=60, what="the cluster is free")
    names = ("queued-1", "queued-2")
    jobs = [write_job(tmp_path / name, "pass", settings) for name in names]
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda job: run_tfy(cluster, "submit", str(job), "--follow"), jobs))
    assert [job.code for job in ended] == [4, 4], [job.stderr for job in ended]
    for name in names:
        status = read_status(cluster, name)
        assert "worker:0, worker:1 not allocated: YARN granted 0 of 2" in status["cause"]
        skein, spark = list_applications(cluster, status["submission_id"])
        assert (skein["finalStatus"], spark["state"]) == ("FAILED", "KILLED")


def allocated_mib(cluster: LocalHadoop) -> int:
    return int(ask_yarn(cluster, "/ws/v1/cluster/metrics")["clusterMetrics"]["allocatedMB"])
