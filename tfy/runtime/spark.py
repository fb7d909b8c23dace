"""The Spark application of a job: its executors host the worker tasks' nodes.

One barrier stage with one task an executor; a task starts a node as a process of its own and
waits for it, so that no TensorFlow and no gRPC ever lives in Spark's forked Python workers.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext

from tfy import contract
from tfy.errors import InternalError, JobFailedError, StartError
from tfy.paths import JobDir
from tfy.plan_model import Plan
from tfy.runtime.identity import ENV_HADOOP_USER, ContainerIdentity

GPU_SCRIPT = f"{contract.LOCAL_CODE}/tfy/runtime/find_gpus.sh"
"""Relative to a container's working directory."""

_POLL_S = 0.25
_ENDED = ("FINISHED", "FAILED", "KILLED")
_FIND_EVERY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """What an executor needs to start a node; travels to it by pickle, without secrets."""

    python: str
    task_type: str


class NodeEndedError(JobFailedError):
    """A worker's node ended with a failure."""


def make_spark_settings(plan: Plan, container: ContainerIdentity) -> dict[str, str]:
    """Spark's configuration for one job. Why each stands here: design notes in docs/cluster.md."""
    if plan.spark is None:
        raise InternalError("the plan has no tasks for Spark's executors")
    workers = plan.task("worker")
    job_dir = JobDir(plan.job_dir)
    cores = str(workers.container.vcores)
    files = [
        *(f"{job_dir.file(staged.name)}#{staged.local_name}" for staged in plan.staged if not staged.archive),
        f"{job_dir.secret(contract.SECRET_CERTIFICATE)}#{contract.LOCAL_CERTIFICATE}",
        f"{job_dir.secret(contract.SECRET_KEY)}#{contract.LOCAL_KEY}",
    ]
    archives = [
        f"{job_dir.file(staged.name)}#{staged.local_name}" for staged in plan.staged if staged.archive
    ]
    settings = {
        "spark.master": "yarn",
        "spark.submit.deployMode": "client",
        "spark.app.name": plan.name,
        "spark.yarn.queue": plan.queue,
        "spark.yarn.tags": f"{contract.TAG_ALL},{contract.submission_tag(plan.submission_id)}",
        "spark.yarn.jars": f"local:{spark_home()}/jars/*",
        "spark.yarn.stagingDir": job_dir.spark_staging,
        "spark.yarn.dist.files": ",".join(files),
        "spark.yarn.dist.archives": ",".join(archives),
        "spark.yarn.maxAppAttempts": "1",
        "spark.yarn.am.memory": f"{plan.spark.am_heap_mib}m",
        "spark.yarn.am.memoryOverhead": f"{plan.spark.am.memory_mib - plan.spark.am_heap_mib}m",
        "spark.yarn.am.extraJavaOptions": "-XX:+UseSerialGC",
        "spark.yarn.scheduler.heartbeat.interval-ms": "1000",
        "spark.driver.host": container.host,
        "spark.driver.bindAddress": container.host,
        "spark.driver.memory": f"{plan.spark.driver_heap_mib}m",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executor.instances": str(workers.instances),
        "spark.executor.cores": cores,
        "spark.task.cpus": cores,
        "spark.executor.memory": f"{plan.spark.executor_heap_mib}m",
        "spark.executor.memoryOverhead": f"{plan.spark.executor_overhead_mib}m",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
        "spark.dynamicAllocation.enabled": "false",
        # A gang: SparkHost begins the stage when every executor has registered, and for as long as
        # timeouts.start allows. Were this 1.0, the context itself would not be there before, and no
        # one could say who is missing; the default begins at 0.8 of them, or after 30 s.
        "spark.scheduler.minRegisteredResourcesRatio": "0.0",
        "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
        # Restarting tasks is the driver's to decide, never Spark's.
        "spark.task.maxFailures": "1",
        "spark.stage.maxConsecutiveAttempts": "1",
        "spark.executor.maxNumFailures": "1000",
        "spark.pyspark.python": plan.python,
        "spark.executorEnv.PYTHONPATH": contract.LOCAL_CODE,
        "spark.executorEnv.GRPC_ENABLE_FORK_SUPPORT": "0",
        "spark.executorEnv.SKEIN_APPMASTER_ADDRESS": container.appmaster,
        "spark.executorEnv.SKEIN_APPLICATION_ID": container.application_id,
    }
    if container.hadoop_user is not None:
        # Containers run as the NodeManager's user; Skein passes the name on to its own only.
        settings[f"spark.executorEnv.{ENV_HADOOP_USER}"] = container.hadoop_user
    if workers.container.node_label:
        settings["spark.yarn.executor.nodeLabelExpression"] = workers.container.node_label
    if workers.container.gpus:
        gpus = str(workers.container.gpus)
        settings |= {
            "spark.executor.resource.gpu.amount": gpus,
            "spark.task.resource.gpu.amount": gpus,
            f"spark.executorEnv.{contract.ENV_GPUS}": gpus,
            # Spark asks an executor which GPUs it has before anything runs on it.
            "spark.executor.resource.gpu.discoveryScript": f"./{GPU_SCRIPT}",
        }
    return settings


def spark_home() -> Path:
    """The folder of the pyspark package, which holds Spark's jars."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise StartError("the task's Python has no pyspark")
    return Path(found.origin).parent


class SparkHost:
    """The Spark application, run from a thread of its own; every question answers at once."""

    def __init__(self, plan: Plan, settings: Mapping[str, str]) -> None:
        self._plan = plan
        self._settings = settings
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="spark")
        self._context: SparkContext | None = None
        self._stopping = threading.Event()
        self._granted = 0
        self._executors = 0
        self._application_id: str | None = None
        self._work: Future[None] | None = None

    def start(self) -> None:
        """Begins: the application, its executors, then the nodes on them."""
        self._work = self._thread.submit(self._run)
        threading.Thread(target=self._find_application, name="spark-find", daemon=True).start()

    @property
    def application_id(self) -> str | None:
        """YARN's id of the Spark application, once there is one."""
        return self._application_id

    @property
    def granted(self) -> int:
        """How many executors' containers YARN has granted."""
        return self._granted

    @property
    def executors(self) -> int:
        """How many executors have registered."""
        return self._executors

    def failure(self) -> str | None:
        """Why the Spark side failed, or None as long as it has not."""
        if self._work is None or not self._work.done():
            return None
        error = self._work.exception()
        if error is None:
            return None if self._stopping.is_set() else "the Spark application ended by itself"
        return summarize_spark_failure(str(error))

    def stop(self, limit_s: float) -> None:
        """Ends the Spark application; what does not end in time dies with this process."""
        self._stopping.set()
        stopper = threading.Thread(target=self._stop, name="spark-stop", daemon=True)
        stopper.start()
        stopper.join(limit_s)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _stop(self) -> None:
        if self._context is not None:
            self._context.stop()
        elif self._application_id is not None:
            # It waits in the queue, and would go on to after its driver's death.
            with _yarn_client(SparkContext._jvm) as yarn:
                yarn.killApplication(_parse_id(SparkContext._jvm, self._application_id))

    def _find_application(self) -> None:
        """Spark tells the id only when its application master runs, which a full queue may put off."""
        tag = contract.submission_tag(self._plan.submission_id)
        while self._application_id is None and not self._stopping.wait(_FIND_EVERY_S):
            jvm = SparkContext._jvm
            if jvm is None:
                continue
            types = jvm.java.util.HashSet()
            types.add("SPARK")
            with _yarn_client(jvm) as yarn:
                for report in yarn.getApplications(types):
                    if tag in report.getApplicationTags():
                        self._application_id = str(report.getApplicationId())

    def _run(self) -> None:
        conf = SparkConf(loadDefaults=False).setAll(list(self._settings.items()))
        context = SparkContext(conf=conf)
        self._context = context
        self._application_id = str(context.applicationId)
        workers = self._plan.task("worker")
        self._wait_for_executors(context, workers.instances)
        if self._stopping.is_set():
            return
        host = HostSettings(python=self._plan.python, task_type=workers.type)
        indexes = context.parallelize(range(workers.instances), workers.instances)
        indexes.barrier().mapPartitions(partial(host_node, host)).collect()

    def _wait_for_executors(self, context: SparkContext, wanted: int) -> None:
        """The driver sets the limit: it stops this where executors are missing for too long.

        Raises `JobFailedError` where the application ends meanwhile, of which Spark itself says nothing.
        """
        status = context._jsc.sc().statusTracker()
        application = _parse_id(context._jvm, context.applicationId)
        with _yarn_client(context._jvm) as yarn:
            while self._executors < wanted and not self._stopping.wait(_POLL_S):
                report = yarn.getApplicationReport(application)
                if str(report.getYarnApplicationState()) in _ENDED:
                    raise JobFailedError(describe_spark_end(str(report.getDiagnostics() or "")))
                usage = report.getApplicationResourceUsageReport()
                # One container is the application master's; Spark's list holds the driver as well.
                self._granted = max(0, usage.getNumUsedContainers() - 1)
                self._executors = max(0, len(status.getExecutorInfos()) - 1)


class NoSpark:
    """What stands for Spark in a job none of whose tasks is hosted by an executor."""

    application_id: str | None = None
    granted = 0
    executors = 0

    def start(self) -> None:
        """There is nothing to start."""

    def failure(self) -> str | None:
        """Never any."""
        return None

    def stop(self, limit_s: float) -> None:
        """There is nothing to stop."""


@contextmanager
def _yarn_client(jvm: Any) -> Iterator[Any]:
    """YARN's own Java client inside Spark's driver process, with its configuration and credentials."""
    yarn = jvm.org.apache.hadoop.yarn
    client = yarn.client.api.YarnClient.createYarnClient()
    client.init(yarn.conf.YarnConfiguration())
    client.start()
    try:
        yield client
    finally:
        client.stop()


def _parse_id(jvm: Any, application_id: str) -> Any:
    return jvm.org.apache.hadoop.yarn.api.records.ApplicationId.fromString(application_id)


def host_node(settings: HostSettings, indexes: Iterable[int]) -> Iterator[int]:
    """On an executor: runs the node of one worker to its end."""
    for index in indexes:
        code_dir = Path.cwd() / contract.LOCAL_CODE
        env = {
            **os.environ,
            "PYTHONPATH": str(code_dir),
            contract.ENV_TASK_TYPE: settings.task_type,
            contract.ENV_TASK_INDEX: str(index),
        }
        node = subprocess.run([settings.python, "-m", "tfy.runtime", "node"], env=env, check=False)
        if node.returncode != 0:
            name = contract.task_name(settings.task_type, index)
            raise NodeEndedError(f"{name}: its node ended with exit status {node.returncode}")
        yield index


def describe_spark_end(diagnostics: str) -> str:
    """Why there is no Spark application any more while its executors are awaited."""
    said = (diagnostics.strip().splitlines() or ["YARN gives no reason"])[0]
    return f"the Spark application ended before all its executors were there: {said}"


_TELLING = (
    re.compile(r"NodeEndedError: (?P<why>.+)"),
    re.compile(r"(?P<why>ExecutorLostFailure .+)"),
    re.compile(r"(?P<why>Job aborted due to stage failure: .+)"),
    re.compile(r": (?P<why>(?:[a-z]+\.)+[A-Z]\w+: .+)"),
)


def summarize_spark_failure(text: str) -> str:
    """The line of Spark's long failure text that says what happened."""
    for pattern in _TELLING:
        found = pattern.search(text)
        if found:
            return found["why"].strip()
    lines = text.strip().splitlines()
    return lines[0] if lines else "the Spark application failed without a word"
