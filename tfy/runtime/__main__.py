"""Entry of the cluster side: `python -m tfy.runtime driver | node | server`."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, Protocol

from tfy import contract
from tfy.errors import TfyError, UnreachableError
from tfy.paths import JobDir
from tfy.plan_model import Plan
from tfy.records import JobReport
from tfy.runtime import identity, proctree
from tfy.runtime.guard import start_guard

if TYPE_CHECKING:
    from tfy.runtime.hosting import Executors
    from tfy.runtime.rendezvous import SkeinRendezvous

_LOG = logging.getLogger("tfy")
# YARN keeps 64 KiB of diagnostics; a cause longer than this helps no one.
_DIAGNOSTICS_LIMIT = 16 << 10
_SPARK_STOP_LIMIT_S = 10.0
# As long as the driver bears its application master's silence.
_END_LIMIT_S = 20.0


class Ending(Protocol):
    """What can be ended: a Skein application."""

    def shutdown(self, status: str, diagnostics: str) -> None:
        """Ends it with YARN's final status and its diagnostics."""


def main(argv: list[str], environ: Mapping[str, str]) -> int:
    """Runs one process of the cluster side; its exit status."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    verb = argv[1] if len(argv) == 2 else ""
    if verb == "server":
        from tfy.runtime.server import run_server

        return run_server(environ)
    if verb not in ("driver", "node"):
        sys.stderr.write("usage: python -m tfy.runtime driver|node|server\n")
        return 2
    return _run_guarded(verb, environ)


def _run_guarded(verb: str, environ: Mapping[str, str]) -> int:
    """Runs a driver or a node so that nothing of its container outlives it."""
    if os.getpgid(0) != os.getsid(0):
        # Spark's Python daemon has a process group of its own, which YARN does not kill.
        os.setpgid(0, os.getsid(0))
    proctree.die_with_parent()
    proctree.adopt_orphans()
    container = identity.read_container(environ)
    guard = start_guard(container.container_id)
    signal.signal(signal.SIGTERM, _leave_at_once)
    run = _run_driver if verb == "driver" else _run_node
    try:
        return run(environ, container, frozenset({guard.pid}))
    finally:
        for pid in proctree.list_descendants(os.getpid()):
            if pid != guard.pid:
                proctree.send(pid, signal.SIGKILL)
        guard.dismiss()


def _leave_at_once(_signum: int, _frame: FrameType | None) -> None:
    """YARN ends the container: 250 ms are left, and the guard does the cleaning."""
    os._exit(128 + signal.SIGTERM)


def _run_node(
    environ: Mapping[str, str], container: identity.ContainerIdentity, spared: frozenset[int]
) -> int:
    from tfy.runtime.node import Node, NodeSettings
    from tfy.runtime.rendezvous import connect

    settings = NodeSettings(
        plan=identity.load_plan(container.work_dir),
        container=container,
        task=identity.read_task(environ),
        environ=environ,
        spared=spared,
    )
    return Node(settings, connect(container)).run()


def _run_driver(
    environ: Mapping[str, str], container: identity.ContainerIdentity, _spared: frozenset[int]
) -> int:
    from tfy.runtime.rendezvous import connect
    from tfy.runtime.spark import NoSpark, SparkHost, make_spark_settings

    plan = identity.load_plan(container.work_dir)
    application = connect(container)
    spark = SparkHost(plan, make_spark_settings(plan, container)) if plan.spark else NoSpark()
    try:
        report = _drive(plan, container, application, spark)
    except Exception as error:  # noqa: BLE001 - the edge of the cluster side: whatever it was, YARN is told
        _LOG.exception("the driver failed")
        text = str(error) if isinstance(error, TfyError) else traceback.format_exc()
        spark.stop(_SPARK_STOP_LIMIT_S)
        end_application(application, "FAILED", f"the driver failed: {text}")
        return 1
    if report.cause is None:
        end_application(application, "SUCCEEDED", f"{plan.name}: {report.state.value}")
    else:
        end_application(application, "FAILED", report.cause)
    return 0


def end_application(application: Ending, status: str, diagnostics: str) -> None:
    """Ends the Skein application, again and again until it is heard: its status is the job's.

    Raises `RendezvousLostError` where it is not; then this process's exit status is all that
    Skein can go by.
    """
    limit = time.monotonic() + _END_LIMIT_S
    while True:
        try:
            application.shutdown(status, diagnostics[:_DIAGNOSTICS_LIMIT])
        except UnreachableError as error:
            _LOG.error("the application could not be ended: %s", error)
            if time.monotonic() > limit:
                raise
            time.sleep(1.0)
        else:
            return


def _drive(
    plan: Plan,
    container: identity.ContainerIdentity,
    application: SkeinRendezvous,
    spark: Executors,
) -> JobReport:
    from tfy.runtime.driver import Driver
    from tfy.runtime.fresh import move_aside
    from tfy.runtime.publisher import Publisher
    from tfy.storage.hadoop_conf import read_properties
    from tfy.storage.hdfs import Storage

    job_dir = JobDir(plan.job_dir)
    properties = read_properties(container.work_dir / contract.LOCAL_HADOOP_CONF)
    storage = Storage(job_dir.file_system, properties)
    aside = move_aside(plan, storage)
    if aside is not None:
        _LOG.info("a fresh start: %s is now %s", plan.checkpoint_dir, aside)
    publisher = Publisher(lambda data: storage.publish(job_dir.status, data))
    publisher.start()
    shares = identity.load_shares(container.work_dir) if plan.input else None
    report = Driver(plan, container.application_id, application, spark, publisher.offer, shares).run()
    publisher.close()
    try:
        storage.publish(job_dir.result, contract.to_json(report))
        # Every container has its own copy; no one needs the key any more.
        storage.delete(job_dir.private)
    except UnreachableError as error:
        # The job's end does not hang on its history: YARN is told all the same.
        _LOG.error("the job's directory could not be left in order: %s", error)
    return report


def run(argv: list[str], environ: Mapping[str, str]) -> NoReturn:
    """Runs `main` and ends this process with its status, whatever thread may still wait for Spark."""
    try:
        status = main(argv, environ)
    except Exception:  # noqa: BLE001 - the edge: the container's log is where this is read
        _LOG.exception("tfy.runtime failed")
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    run(sys.argv, os.environ)
