"""Jobs of the tests, submitted as a user submits them, and what YARN says of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hdfs_native

from tests.conftest import LocalHadoop
from tests.waiting import wait_until
from tfy.contract import submission_tag
from tfy.runtime import proctree

TFY = (sys.executable, "-m", "tfy")
# Two busy cores: Spark alone takes 13 s to start on idle ones.
START_LIMIT_S = 180.0
JOB_LIMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str


def run_tfy(
    cluster: LocalHadoop, *args: str, environ: Mapping[str, str] | None = None, limit_s: float = JOB_LIMIT_S
) -> Ended:
    """Runs `tfy` to its end."""
    done = subprocess.run(
        [*TFY, *args],
        env=dict(cluster.environ if environ is None else environ),
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def write_job(folder: Path, program: str, settings: str = "") -> Path:
    """A small job: one ps, two workers, a chief that runs `program`; `settings` are further lines."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(program)
    if "tasks:" not in settings:
        settings += SMALL_TASKS
    path = folder / "job.yaml"
    path.write_text(f"name: {folder.name}\nprogram: train.py\n{settings}")
    return path


SMALL_TASKS = """
tasks:
  ps: {instances: 1, memory: 1 GiB}
  worker: {instances: 2, memory: 1536 MiB}
  chief: {memory: 1 GiB}
"""


# Trains for ever, and tells of each step.
TRAINING = """
import tensorflow as tf
from tfy.runtime import current_job

strategy = current_job().strategy()
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    total = tf.Variable(0.0)

@tf.function
def step():
    total.assign_add(1.0)
    return total.read_value()

count = 0
while True:
    coordinator.fetch(coordinator.schedule(step))
    count += 1
    current_job().report(step=count, total=total)
"""


class Follower:
    """`tfy submit --follow` in the background, and the job that it follows."""

    def __init__(self, cluster: LocalHadoop, job: Path, folder: Path) -> None:
        self.cluster = cluster
        self._stdout = folder / "follower.out"
        self._stderr = folder / "follower.err"
        with self._stdout.open("wb") as out, self._stderr.open("wb") as err:
            self._process = subprocess.Popen(
                [*TFY, "submit", str(job), "--follow"], env=cluster.environ, stdout=out, stderr=err
            )

    @property
    def stdout(self) -> str:
        """What it has printed as results."""
        return self._stdout.read_text()

    @property
    def stderr(self) -> str:
        """What it has narrated."""
        return self._stderr.read_text()

    @property
    def application_id(self) -> str:
        """The first thing on standard output."""
        wait_until(lambda: "\n" in self.stdout or self.ended, limit_s=START_LIMIT_S, what="an application id")
        assert self.stdout, self.stderr
        return self.stdout.splitlines()[0]

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def wait_for(self, text: str) -> None:
        """Waits until it has narrated `text`."""
        wait_until(
            lambda: text in self.stderr or self.ended, limit_s=START_LIMIT_S, what=f"{text!r} narrated"
        )
        assert text in self.stderr, self.stderr

    def wait(self, limit_s: float) -> int:
        """Its exit code, within the limit."""
        return self._process.wait(limit_s)

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def stop(self) -> None:
        """Ends it, and the job with it where that still runs."""
        if self.ended:
            return
        self._process.terminate()
        self._process.wait(30)
        if self.stdout:
            run_tfy(self.cluster, "kill", self.stdout.splitlines()[0])


@contextmanager
def follow(cluster: LocalHadoop, job: Path) -> Iterator[Follower]:
    """Submits and follows in the background; nothing of it is left afterwards."""
    follower = Follower(cluster, job, job.parent)
    try:
        yield follower
    finally:
        follower.stop()


def read_status(cluster: LocalHadoop, job: str) -> dict[str, Any]:
    """`tfy status --json`."""
    ended = run_tfy(cluster, "status", job, "--json")
    assert ended.code == 0, ended.stderr
    status: dict[str, Any] = json.loads(ended.stdout)
    return status


def open_hdfs(cluster: LocalHadoop) -> hdfs_native.Client:
    """The cluster's file system, past tfy's own hold on it."""
    return hdfs_native.Client(cluster.uri)


def list_applications(cluster: LocalHadoop, submission_id: str) -> list[dict[str, Any]]:
    """YARN's own word on the applications of one submission, Skein's first."""
    found = ask_yarn(cluster, "/ws/v1/cluster/apps").get("apps") or {"app": []}
    tag = submission_tag(submission_id)
    mine = [app for app in found["app"] if tag in app["applicationTags"].split(",")]
    return sorted(mine, key=lambda app: str(app["id"]))


def ask_yarn(cluster: LocalHadoop, path: str) -> dict[str, Any]:
    """The ResourceManager's REST interface."""
    with urllib.request.urlopen(f"{cluster.rm_web}{path}", timeout=10) as response:
        answer: dict[str, Any] = json.load(response)
    return answer


def kill_by_rest(cluster: LocalHadoop, application_id: str) -> None:
    """Kills an application as anyone may who reaches the ResourceManager."""
    request = urllib.request.Request(
        f"{cluster.rm_web}/ws/v1/cluster/apps/{application_id}/state?user.name=root",
        data=b'{"state": "KILLED"}',
        method="PUT",
        headers={"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=10).close()


def container_processes(application_id: str) -> dict[int, str]:
    """Processes with one of the application's container ids in their environment: pid → container id."""
    number = application_id.removeprefix("application_")
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        for variable in environment.split(b"\0"):
            name, _, value = variable.decode(errors="replace").partition("=")
            if name == "CONTAINER_ID" and f"_{number}_" in value and proctree.is_running(int(entry.name)):
                found[int(entry.name)] = value
    return found
