"""Every strategy on the real cluster: synchronous, its own way, and with an evaluator beside."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LocalHadoop
from tests.jobs.running import open_hdfs, read_status, run_tfy, write_job

pytestmark = pytest.mark.cluster

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


@dataclass(frozen=True, slots=True)
class Ran:
    """A job that has ended: what following it printed, and its status."""

    stdout: str
    stderr: str
    status: dict[str, Any]

    @property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """The final table of tasks, by name."""
        return {record["task"]: record for record in self.status["report"]["tasks"]}

    def metrics(self, task: str) -> dict[str, float]:
        """The newest metrics of one task."""
        return {metric["name"]: metric["value"] for metric in self.tasks[task]["progress"]["metrics"]}


def run_job(cluster: LocalHadoop, job: Path, *options: str) -> Ran:
    """Submits and follows; the job has to succeed."""
    ended = run_tfy(cluster, "submit", str(job), "--follow", *options)
    assert ended.code == 0, ended.stderr
    return Ran(ended.stdout, ended.stderr, read_status(cluster, ended.stdout.splitlines()[0]))


# --- synchronously ----------------------------------------------------------------------------
@pytest.fixture(scope="module")
def synchronous(cluster: LocalHadoop) -> Ran:
    """digits by `multi_worker_mirrored`, from scratch."""
    subprocess.run(
        [sys.executable, str(DIGITS / "prepare.py")],
        env={**cluster.environ, "HADOOP_CONF_DIR": str(cluster.conf_dir)},
        check=True,
        timeout=180,
        capture_output=True,
    )
    open_hdfs(cluster).delete("/models/digits-sync", recursive=True)
    return run_job(cluster, DIGITS / "job-sync.yaml")


@pytest.mark.timeout(300)
def test_digits_learn_synchronously(synchronous: Ran) -> None:
    assert set(synchronous.tasks) == {"worker:0", "worker:1"}
    first, second = synchronous.metrics("worker:0"), synchronous.metrics("worker:1")
    assert first["val_accuracy"] >= 0.95
    # One model: what a step brought is the same on both.
    assert first == second
    for task in synchronous.tasks.values():
        assert task["state"] == "succeeded"
        assert task["progress"]["steps"] == 500


def test_each_mirrored_worker_read_its_own_share(synchronous: Ran) -> None:
    for task in synchronous.tasks.values():
        assert task["progress"]["bytes_read"] > 0
        assert task["progress"]["input"]["records"] > 0
    told = synchronous.status["report"]["input"]
    assert told["exact"] is True
    assert sum(told["records"]) == 1438
    assert "each of 1,438 records read exactly once" in synchronous.stdout


def test_only_the_leads_checkpoints_stay(synchronous: Ran, cluster: LocalHadoop) -> None:
    names = {
        status.path.rpartition("/")[2] for status in open_hdfs(cluster).list_status("/models/digits-sync")
    }
    assert {name for name in names if name.endswith(".index")} == {f"ckpt-{step}.index" for step in (3, 4, 5)}
    assert synchronous.tasks["worker:0"]["progress"]["checkpoint"] == "hdfs:///models/digits-sync/ckpt-5"


# --- in its own way ---------------------------------------------------------------------------
# Knows nothing of tfy: a server of its own on every task, and a chief that uses them by TF_CONFIG.
OWN_SERVERS = """
import json, os
import tensorflow as tf

config = json.loads(os.environ["TF_CONFIG"])
task, cluster = config["task"], tf.train.ClusterSpec(config["cluster"])
print("I am", task["type"], task["index"], flush=True)
server = tf.distribute.Server(cluster, job_name=task["type"], task_index=task["index"])
if task["type"] != "chief":
    server.join()
tf.config.experimental_connect_to_cluster(cluster, job_name="chief", task_index=0)
with tf.device("/job:ps/task:0"):
    total = tf.Variable(0.0)
for index in range(cluster.num_tasks("worker")):
    with tf.device(f"/job:worker/task:{index}"):
        total.assign_add(tf.constant(10.0) + index)
print("total", float(total.read_value()), flush=True)
assert float(total.read_value()) == 21.0
"""


@pytest.mark.timeout(300)
def test_a_program_that_knows_nothing_of_tfy_starts_its_own_servers(
    cluster: LocalHadoop, tmp_path: Path
) -> None:
    job = write_job(tmp_path / "own-servers", OWN_SERVERS, "strategy: none")
    ran = run_job(cluster, job)
    states = {name: task["state"] for name, task in ran.tasks.items()}
    assert states == {"chief:0": "succeeded", "worker:0": "stopped", "worker:1": "stopped", "ps:0": "stopped"}
    logs = run_tfy(cluster, "logs", "own-servers")
    for name in states:
        assert f"I am {name.replace(':', ' ')}" in logs.stdout
    assert "total 21.0" in logs.stdout


# One task that is a cluster of its own.
ALONE = """
import json, os
config = json.loads(os.environ["TF_CONFIG"])
assert list(config["cluster"]) == ["chief"] and len(config["cluster"]["chief"]) == 1, config
"""


@pytest.mark.timeout(300)
def test_a_chief_alone_needs_no_spark(cluster: LocalHadoop, tmp_path: Path) -> None:
    settings = "strategy: none\ntasks: {chief: {memory: 1 GiB}}\n"
    ran = run_job(cluster, write_job(tmp_path / "alone", ALONE, settings))
    assert ran.status["report"]["spark_application_id"] is None
    assert ran.tasks["chief:0"]["state"] == "succeeded"


# --- an evaluator, partitioned variables, and a second run --------------------------------------
PARTITIONED = """
import time
import tensorflow as tf
from tfy.runtime import current_job

ROUNDS, STEPS = 3, 20
job = current_job()
seen = f"{job.checkpoint_dir}-seen"


def wait_for_evaluator(step):
    limit = time.monotonic() + 90
    while not tf.io.gfile.exists(f"{seen}/{step}"):
        if time.monotonic() > limit:
            raise SystemExit(f"the evaluator has not looked at step {step}")
        time.sleep(0.2)


def train():
    shards = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
    strategy = job.strategy(variable_partitioner=shards)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        table = tf.Variable(tf.zeros([8, 2]))
        count = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(table=table, count=count)
    manager = job.checkpoint_manager(checkpoint)
    restored = job.restore(checkpoint)
    print("restored", restored, flush=True)
    began = int(count.numpy())

    @tf.function
    def step():
        for shard in table.variables:
            shard.assign_add(tf.ones_like(shard))
        count.assign_add(1)

    ps = len({shard.device for shard in table.variables})
    for number in range(ROUNDS):
        for _ in range(STEPS):
            coordinator.schedule(step)
        coordinator.join()
        path = manager.save()
        job.report(step=count.numpy(), began=began, ps=ps, checkpoint=path)
        if number < ROUNDS - 1:
            wait_for_evaluator(int(count.numpy()))


def evaluate():
    table, count = tf.Variable(tf.zeros([8, 2])), tf.Variable(0, dtype=tf.int64)
    looks = 0
    tf.io.gfile.makedirs(seen)
    for path in job.checkpoints(tf.train.Checkpoint(table=table, count=count), poll_s=0.5):
        looks += 1
        right = tf.equal(table, tf.cast(count, tf.float32))
        job.report(step=count.numpy(), accuracy=tf.reduce_mean(tf.cast(right, tf.float32)), looks=looks)
        with tf.io.gfile.GFile(f"{seen}/{int(count.numpy())}", "w") as mark:
            mark.write(path)


evaluate() if job.task.type == "evaluator" else train()
"""
PARTITIONED_TASKS = """
tasks:
  ps: {instances: 2, memory: 1 GiB}
  worker: {instances: 2, memory: 1536 MiB}
  chief: {memory: 1 GiB}
  evaluator: {memory: 1 GiB}
checkpoint: {dir: "hdfs:///models/partitioned", keep: 1}
"""


@dataclass(frozen=True, slots=True)
class Runs:
    """One job submitted three times: from scratch, again over a broken newest checkpoint, and fresh."""

    first: Ran
    again: Ran
    fresh: Ran


@pytest.fixture(scope="module")
def partitioned(cluster: LocalHadoop, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    hdfs = open_hdfs(cluster)
    for status in hdfs.glob_status("/models/partitioned*"):
        hdfs.delete(status.path, recursive=True)
    job = write_job(tmp_path_factory.mktemp("jobs") / "partitioned", PARTITIONED, PARTITIONED_TASKS)
    first = run_job(cluster, job)
    break_newest(cluster)
    again = run_job(cluster, job)
    hdfs.delete("/models/partitioned-seen", recursive=True)
    return Runs(first, again, run_job(cluster, job, "--fresh"))


def break_newest(cluster: LocalHadoop) -> None:
    """A newer checkpoint that its program had not written to the end when it was killed."""
    hdfs = open_hdfs(cluster)
    folder = "/models/partitioned"
    with hdfs.read(f"{folder}/ckpt-3.index") as reader:
        index = bytes(reader.read())
    state = 'model_checkpoint_path: "ckpt-4"\nall_model_checkpoint_paths: "ckpt-3"\n'
    state += 'all_model_checkpoint_paths: "ckpt-4"\n'
    for name, data in (
        ("ckpt-4.index", index),
        ("ckpt-4.data-00000-of-00001", b"half"),
        ("checkpoint", state.encode()),
    ):
        hdfs.delete(f"{folder}/{name}")
        with hdfs.create(f"{folder}/{name}") as writer:
            writer.write(data)


@pytest.mark.timeout(900)
def test_a_variable_is_partitioned_over_both_ps(partitioned: Runs) -> None:
    assert partitioned.first.metrics("chief:0")["ps"] == 2
    assert partitioned.first.tasks["chief:0"]["progress"]["steps"] == 60


def test_the_evaluator_looks_at_checkpoints_and_ends_by_itself(partitioned: Runs) -> None:
    evaluator = partitioned.first.tasks["evaluator:0"]
    assert (evaluator["state"], evaluator["exit_code"]) == ("succeeded", 0)
    metrics = partitioned.first.metrics("evaluator:0")
    assert metrics["looks"] == 3
    assert metrics["accuracy"] == 1.0
    # The last checkpoint, which was written just before training was done.
    assert evaluator["progress"]["steps"] == 60
    assert "evaluating the last checkpoint" in partitioned.first.stderr
    assert "evaluator:0 accuracy  1" in partitioned.first.stdout


def test_a_second_submit_goes_on_from_the_newest_complete_checkpoint(partitioned: Runs) -> None:
    assert partitioned.first.metrics("chief:0")["began"] == 0
    assert partitioned.again.metrics("chief:0")["began"] == 60
    assert partitioned.again.tasks["chief:0"]["progress"]["steps"] == 120


def test_an_incomplete_checkpoint_is_passed_over_and_said(partitioned: Runs, cluster: LocalHadoop) -> None:
    application_id = partitioned.again.status["application_id"]
    logs = run_tfy(cluster, "logs", application_id, "chief:0")
    assert "ckpt-4 is passed over" in logs.stdout
    assert "restored hdfs:///models/partitioned/ckpt-3" in logs.stdout


def test_a_fresh_start_begins_at_zero_and_loses_nothing(partitioned: Runs, cluster: LocalHadoop) -> None:
    assert partitioned.fresh.metrics("chief:0")["began"] == 0
    submission = partitioned.fresh.status["submission_id"]
    aside = f"/models/partitioned-before-{submission[:8]}"
    assert f"becomes hdfs://{aside}" in partitioned.fresh.stderr
    names = [status.path.rpartition("/")[2] for status in open_hdfs(cluster).list_status(aside)]
    # What the second run had left, and the broken one that it passed over.
    assert {name for name in names if name.endswith(".index")} >= {"ckpt-6.index"}
    assert "checkpoint" in names
