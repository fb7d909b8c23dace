"""The node: supervisor of one task.

Registers the task's address, waits for the cluster spec, runs the program (the user's own, or
the built-in TensorFlow server) as its child, tells the driver how it stands, and stops it when
the driver says so. The node does not know who hosts it: a Skein service or a Spark executor.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tfy import contract
from tfy.errors import StartError, TfyError
from tfy.paths import log_times, program_log
from tfy.plan_model import Plan
from tfy.records import StopOrder, TaskRecord
from tfy.runtime import cluster_spec, process
from tfy.runtime.devices import find_rdma_ports, list_collective_tasks, note_transport, take_devices
from tfy.runtime.failures import describe_end
from tfy.runtime.filesystem import hook_path
from tfy.runtime.identity import ContainerIdentity, Task
from tfy.runtime.log_clock import LogClock
from tfy.runtime.ports import hold_port
from tfy.runtime.process import TRACEBACK, Program
from tfy.runtime.rdma import list_links
from tfy.runtime.rendezvous import Rendezvous, RendezvousLostError
from tfy.runtime.report import ReportReader
from tfy.states import TaskState

_LOG = logging.getLogger(__name__)

POLL_S = 0.5
STOP_GRACE_S = 5.0
# The driver's word may be late while its host is busy; longer silence means that it is gone.
SILENCE_LIMIT_S = 20.0

_REPORT_FILE = "report.jsonl"
_WORK_FOLDER = "work"
# What the container's environment holds for Skein, Spark or Java is nothing to the program.
_HIDDEN = ("CLASSPATH", "SKEIN_", "SPARK_", "PYSPARK_", "PYTHONPATH", "PYTHONHASHSEED", "OMP_NUM_THREADS")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """All that a node is told at its start."""

    plan: Plan
    container: ContainerIdentity
    task: Task
    environ: Mapping[str, str]
    spared: frozenset[int]


class Node:
    """One task from its registration to its end."""

    def __init__(self, settings: NodeSettings, rendezvous: Rendezvous) -> None:
        self._settings = settings
        self._rendezvous = rendezvous
        self._reader = ReportReader(
            settings.container.work_dir / _REPORT_FILE,
            counts_steps=settings.plan.strategy != "multi_worker_mirrored",
        )
        # The evaluator's program looks for it: no checkpoint comes after this.
        self._done_mark = settings.container.work_dir / contract.LOCAL_DONE
        log_dir, log = settings.container.log_dir, program_log(settings.task.type, settings.task.index)
        self._clock = LogClock(log_dir / log, log_dir / log_times(log))
        self._heard = time.monotonic()
        self._record = TaskRecord(
            task=str(settings.task),
            state=TaskState.REGISTERED,
            host=settings.container.host,
            container_id=settings.container.container_id,
            node_web=settings.container.node_web,
            started=time.time(),
        )

    def run(self) -> int:
        """Runs the task; the exit status for the container. The node's own fault is told as the task's."""
        try:
            return self._run()
        except (TfyError, OSError, subprocess.TimeoutExpired) as error:
            failed = replace(
                self._record, state=TaskState.FAILED, error=f"its node failed: {error}", ended=time.time()
            )
            with suppress(RendezvousLostError):
                self._put(failed)
            raise

    def _run(self) -> int:
        port = hold_port()
        self._ports = find_rdma_ports(self._settings.plan, self._settings.task.type)
        self._record = replace(self._record, port=port.number, rdma_links=list_links(self._ports))
        self._tell(TaskState.REGISTERED)
        cluster = self._wait_for_cluster()
        if cluster is None:
            self._tell(TaskState.STOPPED)
            return 0
        program = self._start(cluster)
        try:
            self._tell(TaskState.RUNNING)
            return self._supervise(program)
        finally:
            program.kill_all()
            self._gpus.release()
            note_transport(self._clock.log)
            self._clock.tick(time.time())
            port.release()

    def _wait_for_cluster(self) -> cluster_spec.ClusterSpec | None:
        """The cluster spec, or None where the driver stops the job before there is one."""
        limit = time.monotonic() + self._settings.plan.start_timeout_s
        while time.monotonic() < limit:
            found = self._ask(contract.KEY_CLUSTER)
            if found is not None:
                spec: cluster_spec.ClusterSpec = json.loads(found)
                return spec
            if self._ask(contract.KEY_STOP) is not None:
                return None
            time.sleep(POLL_S)
        raise StartError(f"{self._settings.task}: no cluster spec within timeouts.start")

    def _start(self, cluster: cluster_spec.ClusterSpec) -> Program:
        settings = self._settings
        work_dir = _make_work_folder(settings.container.work_dir)
        devices = take_devices(
            settings.plan,
            settings.task.type,
            settings.container.container_id,
            settings.environ,
            self._ports,
            self._read_links(),
        )
        # Held until nothing of the program is left.
        self._gpus = devices.gpus
        with self._clock.log.open("a") as log:
            log.writelines(f"tfy: {sentence}\n" for sentence in devices.sentences)
        return process.start_program(
            make_command(settings, work_dir),
            env={**make_program_env(settings, cluster), **devices.env},
            work_dir=work_dir,
            log=self._clock.log,
            spared=settings.spared,
        )

    def _read_links(self) -> dict[str, tuple[str, ...]]:
        """What the hosts of all tasks that talk by NCCL have; each told it when it registered."""
        plan, links = self._settings.plan, {}
        names = list_collective_tasks(plan, self._settings.task.type) if plan.rdma != "off" else ()
        limit = time.monotonic() + SILENCE_LIMIT_S
        for name in names:
            while (found := self._ask(contract.task_key(name))) is None:
                if time.monotonic() > limit:
                    raise StartError(f"{name} is in the cluster spec, but has no record")
                time.sleep(POLL_S)
            links[name] = contract.from_json(found, TaskRecord).rdma_links
        return links

    def _supervise(self, program: Program) -> int:
        while (code := program.exit_code()) is None:
            stop = self._ask(contract.KEY_STOP)
            if stop is not None:
                order = contract.from_json(stop, StopOrder)
                if not (order.evaluating and self._settings.task.type == "evaluator"):
                    return self._stop(program, order)
                self._done_mark.touch()
            program.reap_orphans()
            self._clock.tick(time.time())
            self._tell_progress()
            time.sleep(POLL_S)
        return self._end(program, code)

    def _stop(self, program: Program, order: StopOrder) -> int:
        _LOG.info("stopped by the driver: %s", order.reason)
        code = program.stop(STOP_GRACE_S)
        self._tell(TaskState.STOPPED, exit_code=code)
        return 0

    def _end(self, program: Program, code: int) -> int:
        """The program ended by itself: a server that does so has failed, whatever its code."""
        task = self._settings.plan.task(self._settings.task.type)
        serves = task.runs == "server"
        if code == 0 and not serves:
            self._tell(TaskState.SUCCEEDED, exit_code=code)
            return 0
        last_words = program.last_words()
        if serves and TRACEBACK not in last_words:
            last_words = ""  # TensorFlow's own chatter
        error = describe_end(code, last_words, task.container.memory_mib)
        self._tell(TaskState.FAILED, exit_code=code, error=error)
        return code if 0 < code < 256 else 1

    def _ask(self, key: str) -> bytes | None:
        try:
            value = self._rendezvous.get(key)
        except RendezvousLostError:
            self._bear_silence()
            return None
        self._heard = time.monotonic()
        return value

    def _tell(
        self,
        state: TaskState,
        *,
        exit_code: int | None = None,
        error: str | None = None,
    ) -> None:
        """Tells of a new state, again and again until it is heard: the job depends on it."""
        record = replace(
            self._record,
            state=state,
            exit_code=exit_code,
            error=error,
            ended=time.time() if state.final else None,
            progress=self._reader.poll(),
        )
        while not self._put(record):
            time.sleep(POLL_S)

    def _tell_progress(self) -> None:
        """Tells what the program has done since, if anything; a later word makes up for a lost one."""
        record = replace(self._record, progress=self._reader.poll())
        if record != self._record:
            self._put(record)

    def _put(self, record: TaskRecord) -> bool:
        try:
            self._rendezvous.put(contract.task_key(record.task), contract.to_json(record))
        except RendezvousLostError:
            self._bear_silence()
            return False
        self._heard = time.monotonic()
        self._record = record
        return True

    def _bear_silence(self) -> None:
        if time.monotonic() - self._heard > SILENCE_LIMIT_S:
            raise RendezvousLostError(
                f"{self._settings.task}: the driver has been silent for {SILENCE_LIMIT_S:.0f} s"
            )


def make_command(settings: NodeSettings, work_dir: Path) -> tuple[str, ...]:
    """What the node runs: the built-in TensorFlow server, or the user's program."""
    plan = settings.plan
    if plan.task(settings.task.type).runs == "server":
        return (plan.python, "-m", "tfy.runtime", "server")
    return (plan.python, "-u", str(work_dir / plan.program), *plan.args)


def make_program_env(settings: NodeSettings, cluster: cluster_spec.ClusterSpec) -> dict[str, str]:
    """The program's environment: the container's, less its hosts' variables, plus the job's."""
    container, task, plan = settings.container, settings.task, settings.plan
    code, program = (container.work_dir / name for name in (contract.LOCAL_CODE, contract.LOCAL_PROGRAM))
    own_path = os.pathsep.join(map(str, (hook_path(), code, program)))
    env = {name: value for name, value in settings.environ.items() if not name.startswith(_HIDDEN)}
    env |= dict(plan.env)
    env |= {
        "PYTHONPATH": own_path,
        "HADOOP_CONF_DIR": str(container.work_dir / contract.LOCAL_HADOOP_CONF),
        # A NodeManager sets HOME=/home/, where nobody can write.
        "HOME": str(container.work_dir),
        # TensorFlow's server binds the port that the node still holds (see ports).
        "TF_GRPC_REUSE_PORT": "1",
        "GRPC_ENABLE_FORK_SUPPORT": "0",
        contract.ENV_TF_CONFIG: cluster_spec.make_tf_config(cluster, task.type, task.index),
        contract.ENV_PLAN: str(container.work_dir / contract.LOCAL_PLAN),
        contract.ENV_INPUT: str(container.work_dir / contract.LOCAL_INPUT),
        contract.ENV_DONE: str(container.work_dir / contract.LOCAL_DONE),
        contract.ENV_REPORT: str(container.work_dir / _REPORT_FILE),
        contract.ENV_NODE_PID: str(os.getpid()),
        contract.ENV_TASK_TYPE: task.type,
        contract.ENV_TASK_INDEX: str(task.index),
        contract.ENV_JOB_NAME: plan.name,
        contract.ENV_SUBMISSION_ID: plan.submission_id,
    }
    if plan.checkpoint_dir is not None:
        env[contract.ENV_CHECKPOINT_DIR] = plan.checkpoint_dir
    if plan.export_dir is not None:
        env[contract.ENV_EXPORT_DIR] = plan.export_dir
    return env


def _make_work_folder(container_dir: Path) -> Path:
    """The program's working directory: its files by name, in a folder that it may write to.

    The unpacked archive itself is shared by all containers of this host.
    """
    work_dir = container_dir / _WORK_FOLDER
    work_dir.mkdir(exist_ok=True)
    for entry in (container_dir / contract.LOCAL_PROGRAM).iterdir():
        link = work_dir / entry.name
        if not link.is_symlink():
            link.symlink_to(entry)
    return work_dir
