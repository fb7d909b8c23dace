"""However a job is killed, its follower knows soon, YARN says why, and no process is left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import LocalHadoop
from tests.jobs.running import (
    TRAINING,
    Follower,
    container_processes,
    follow,
    kill_by_rest,
    list_applications,
    read_status,
    run_tfy,
    write_job,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

FOLLOWER_LIMIT_S = 15.0
RELEASE_LIMIT_S = 30.0

# Forks, double-forks and calls setsid, then trains for ever.
PROGRAM = (
    """
import os, time

def child():
    while True:
        time.sleep(1)

if os.fork() == 0:
    child()
if os.fork() == 0:
    os.setsid()
    child()
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        os.closerange(0, 256)
        child()
    os._exit(0)
"""
    + TRAINING
)


def kill_by_tfy(cluster: LocalHadoop, application_id: str) -> None:
    assert run_tfy(cluster, "kill", application_id).code == 0


def kill_skeins_processes(_cluster: LocalHadoop, application_id: str) -> None:
    """The Skein AM's JVM and the shells above it, as an operator or the kernel might: not our driver."""
    killed = 0
    for pid, container in container_processes(application_id).items():
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if container.endswith("_000001") and b"com.anaconda.skein.ApplicationMaster" in command:
            os.kill(pid, signal.SIGKILL)
            killed += 1
    assert killed >= 1


def kill_the_whole_am_container(_cluster: LocalHadoop, application_id: str) -> None:
    for pid, container in container_processes(application_id).items():
        if container.endswith("_000001"):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("kill", "state", "reason"),
    [
        (kill_by_tfy, "killed", "killed by user"),
        (kill_by_rest, "killed", "killed by user"),
        (kill_skeins_processes, "failed", "137"),
        (kill_the_whole_am_container, "failed", "137"),
    ],
)
def test_a_killed_job_ends_whole(
    cluster: LocalHadoop,
    tmp_path: Path,
    kill: Callable[[LocalHadoop, str], None],
    state: str,
    reason: str,
) -> None:
    with follow(cluster, write_job(tmp_path / "killed", PROGRAM)) as follower:
        follower.wait_for("  total ")
        application_id = follower.application_id
        submission_id = read_status(cluster, application_id)["submission_id"]
        skein, spark = list_applications(cluster, submission_id)
        assert spark["state"] == "RUNNING"
        assert len(processes(skein["id"], spark["id"])) > 12
        began = time.monotonic()
        kill(cluster, application_id)
        assert follower.wait(FOLLOWER_LIMIT_S) == 1
        check_follower(follower, state, reason)
        left = RELEASE_LIMIT_S - (time.monotonic() - began)
        wait_until(
            lambda: all(
                app["state"] in ("FINISHED", "FAILED", "KILLED")
                for app in list_applications(cluster, submission_id)
            ),
            limit_s=left,
            what="both applications ended",
        )
        left = RELEASE_LIMIT_S - (time.monotonic() - began)
        wait_until(lambda: not processes(skein["id"], spark["id"]), limit_s=left, what="no process left")
    status = read_status(cluster, application_id)
    assert status["state"] == state
    assert reason in status["cause"]


def processes(*application_ids: str) -> dict[int, str]:
    found = {}
    for application_id in application_ids:
        found.update(container_processes(application_id))
    return found


def check_follower(follower: Follower, state: str, reason: str) -> None:
    last = follower.stdout.splitlines()[-1]
    assert last.startswith(f"killed {state} ")
    assert reason in follower.stdout + follower.stderr


def test_ctrl_c_stops_following_and_not_the_job(cluster: LocalHadoop, tmp_path: Path) -> None:
    job = write_job(tmp_path / "interrupted", "import time; time.sleep(600)")
    with follow(cluster, job) as follower:
        application_id = follower.application_id
        follower.wait_for("starting Spark")
        follower.interrupt()
        assert follower.wait(FOLLOWER_LIMIT_S) == 130
        assert f"tfy status {application_id}" in follower.stderr
        assert f"tfy kill {application_id}" in follower.stderr
        assert read_status(cluster, application_id)["state"] == "starting"
        assert run_tfy(cluster, "kill", "interrupted").code == 0
        assert read_status(cluster, "interrupted")["state"] == "killed"
        wait_until(
            lambda: not container_processes(application_id), limit_s=RELEASE_LIMIT_S, what="no process left"
        )
