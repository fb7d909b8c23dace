"""GPUs asked of a real ResourceManager, given by a real NodeManager; only the devices do not exist.

The NodeManager runs Hadoop's GPU plugin with a discovery program of ours (tests/gpu_host.py). It has no
LinuxContainerExecutor, so it counts the devices and does not choose them: that is the node's to do.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LocalHadoop
from tests.jobs.gpu_node import HOST, count_gpus, find_node, gpu_node
from tests.jobs.running import (
    JOB_LIMIT_S,
    Follower,
    ask_yarn,
    follow,
    list_applications,
    open_hdfs,
    read_status,
    run_tfy,
    write_job,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

DEVICES = tuple(f"GPU-{uuid.uuid4()}" for _ in range(2))

# Tells what it sees, and stays until the test has looked.
PROGRAM = """
import json, os, sys, time
import hdfs_native

uri, folder = sys.argv[1:]
hdfs = hdfs_native.Client(uri)
seen = {name: os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "NM_HOST")}
task = os.environ["TFY_TASK_TYPE"] + "-" + os.environ["TFY_TASK_INDEX"]
with hdfs.create(f"{folder}/{task}") as file:
    file.write(json.dumps(seen).encode())
limit = time.monotonic() + 300
while time.monotonic() < limit:
    try:
        hdfs.get_file_info(f"{folder}/go")
        break
    except Exception:
        time.sleep(0.2)
else:
    sys.exit("nobody said go")
"""


@pytest.fixture(scope="module")
def gpus(cluster: LocalHadoop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A third node, with two GPUs."""
    with gpu_node(cluster, tmp_path_factory.mktemp("gpu-node"), DEVICES):
        yield


class Meeting:
    """A folder on HDFS where a job's tasks tell what they see, and wait for a word."""

    def __init__(self, cluster: LocalHadoop) -> None:
        self.uri = cluster.uri
        self.path = f"/tmp/tfy-gpus-{uuid.uuid4()}"
        self._hdfs = open_hdfs(cluster)
        self._hdfs.mkdirs(self.path)

    def settings(self, tasks: str) -> str:
        """The job's lines that bring its tasks here."""
        return (
            f'strategy: none\nargs: ["{self.uri}", "{self.path}"]\n'
            f"checkpoint: {{dir: {self.uri}{self.path}-checkpoints}}\ntasks:\n{tasks}"
        )

    def read(self) -> dict[str, dict[str, str]]:
        """What each task that is here sees of its environment."""
        told = {}
        for status in self._hdfs.list_status(self.path):
            with self._hdfs.read(status.path) as file:
                told[status.path.rpartition("/")[2]] = file.read()
        return {task: json.loads(data) for task, data in told.items() if data}

    def wait_for(self, tasks: set[str], follower: Follower) -> dict[str, dict[str, str]]:
        """What they see, once all of them are here."""
        wait_until(
            lambda: set(self.read()) >= tasks or follower.ended, limit_s=JOB_LIMIT_S, what=f"{tasks} to run"
        )
        assert not follower.ended, follower.stderr
        return self.read()

    def clear(self) -> None:
        """Nothing is left of it."""
        self._hdfs.delete(self.path, recursive=True)

    def dismiss(self) -> None:
        """The tasks may end."""
        with self._hdfs.create(f"{self.path}/go") as file:
            file.write(b"go")


@pytest.fixture
def meeting(cluster: LocalHadoop) -> Iterator[Meeting]:
    """A folder for one job's tasks."""
    meeting = Meeting(cluster)
    yield meeting
    meeting.clear()


def gpus_in_use(cluster: LocalHadoop, application: dict[str, Any]) -> int:
    """The GPUs of all containers that the ResourceManager has given to an application."""
    app = ask_yarn(cluster, f"/ws/v1/cluster/apps/{application['id']}")["app"]
    usages = app["resourceInfo"]["resourceUsagesByPartition"]
    return sum(count_gpus(usage["used"]) for usage in usages)


def refuse(cluster: LocalHadoop, folder: Path, gpus: int, environ: Mapping[str, str] | None = None) -> str:
    """What submitting a job of workers with so many GPUs says; nothing of it reaches YARN."""
    job = write_job(
        folder, PROGRAM, f"strategy: none\ntasks:\n  worker: {{memory: 1536 MiB, gpus: {gpus}}}\n"
    )
    ended = run_tfy(cluster, "submit", str(job), environ=environ)
    assert ended.code == 2, ended.stderr
    assert ended.stdout == ""
    return " ".join(ended.stderr.split())


def test_a_cluster_without_gpus_says_so(cluster: LocalHadoop, tmp_path: Path) -> None:
    said = refuse(cluster, tmp_path / "no-gpus", 1)
    nodes = len(cluster.shape.nodes)
    assert (
        f"tasks.worker.gpus: 1 asked, this cluster has no GPU: {nodes} NodeManagers, none offers yarn.io/gpu"
        in said
    )


def test_more_than_the_largest_node_manager_offers_is_refused_with_both_numbers(
    cluster: LocalHadoop, gpus: None, tmp_path: Path
) -> None:
    said = refuse(cluster, tmp_path / "too-many", 16)
    assert "tasks.worker.gpus: 16 asked, the largest NodeManager offers 2" in said


def test_a_client_that_cannot_see_gpus_is_told_why(cluster: LocalHadoop, gpus: None, tmp_path: Path) -> None:
    conf_dir = tmp_path / "conf"
    shutil.copytree(cluster.conf_dir, conf_dir, ignore=shutil.ignore_patterns("resource-types.xml"))
    said = refuse(cluster, tmp_path / "blind", 1, {**cluster.environ, "HADOOP_CONF_DIR": str(conf_dir)})
    assert "this cluster has no GPU: " in said
    assert "hint: GPUs are seen only where this machine's Hadoop configuration has yarn.io/gpu" in said


def test_each_worker_sees_a_gpu_of_its_own_and_others_none(
    cluster: LocalHadoop, gpus: None, meeting: Meeting, tmp_path: Path
) -> None:
    tasks = """
  worker: {instances: 2, memory: 1536 MiB, gpus: 1}
  ps: {memory: 768 MiB}
  evaluator: {memory: 1 GiB}
"""
    job = write_job(tmp_path / "own-gpus", PROGRAM, meeting.settings(tasks))
    with follow(cluster, job) as follower:
        seen = meeting.wait_for({"worker-0", "worker-1", "ps-0", "evaluator-0"}, follower)
        status = read_status(cluster, follower.application_id)
        skein, spark = list_applications(cluster, status["submission_id"])
        # The ResourceManager's own count: Spark's executors have the GPUs, and it took them off the node.
        assert (gpus_in_use(cluster, skein), gpus_in_use(cluster, spark)) == (0, 2)
        node = find_node(cluster)
        assert node is not None
        assert (count_gpus(node["totalResource"]), count_gpus(node["usedResource"])) == (2, 2)
        meeting.dismiss()
        assert follower.wait(JOB_LIMIT_S) == 0, follower.stderr
    workers = [seen["worker-0"], seen["worker-1"]]
    assert {worker["CUDA_VISIBLE_DEVICES"] for worker in workers} == set(DEVICES)
    assert [worker["NM_HOST"] for worker in workers] == [HOST, HOST]
    assert [seen[task]["CUDA_VISIBLE_DEVICES"] for task in ("ps-0", "evaluator-0")] == ["-1", "-1"]


def test_a_service_gets_gpus_too(cluster: LocalHadoop, gpus: None, meeting: Meeting, tmp_path: Path) -> None:
    job = write_job(tmp_path / "chief-gpus", PROGRAM, meeting.settings("  chief: {memory: 1 GiB, gpus: 2}\n"))
    with follow(cluster, job) as follower:
        seen = meeting.wait_for({"chief-0"}, follower)
        status = read_status(cluster, follower.application_id)
        (skein,) = list_applications(cluster, status["submission_id"])
        assert gpus_in_use(cluster, skein) == 2
        meeting.dismiss()
        assert follower.wait(JOB_LIMIT_S) == 0, follower.stderr
    assert seen["chief-0"]["NM_HOST"] == HOST
    assert set(seen["chief-0"]["CUDA_VISIBLE_DEVICES"].split(",")) == set(DEVICES)
