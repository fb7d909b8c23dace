"""Entry of the cluster side: `python -m tfy.runtime driver | node | server`."""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING

from tfy import contract
from tfy.contract import JobReport, Plan
from tfy.errors import TfyError, UnreachableError
from tfy.paths import JobDir
from tfy.runtime import identity, proctree
from tfy.runtime.guard import start_guard

if TYPE_CHECKING:
    from tfy.runtime.rendezvous import SkeinRendezvous

_LOG = logging.getLogger("tfy")
# YARN keeps 64 KiB of diagnostics; a cause longer than this helps no one.
_DIAGNOSTICS_LIMIT = 16 << 10


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
    status = run(environ, container, frozenset({guard.pid}))
    for pid in proctree.list_descendants(os.getpid()):
        if pid != guard.pid:
            proctree.send(pid, signal.SIGKILL)
    guard.dismiss()
    return status


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
    try:
        return Node(settings, connect(container)).run()
    except TfyError as error:
        _LOG.error("%s", error)
        return 1


def _run_driver(
    environ: Mapping[str, str], container: identity.ContainerIdentity, _spared: frozenset[int]
) -> int:
    from tfy.runtime.rendezvous import connect

    plan = identity.load_plan(container.work_dir)
    application = connect(container)
    try:
        report = _drive(plan, container, application)
    except Exception as error:  # noqa: BLE001 - the edge of the cluster side: whatever it was, YARN is told
        _LOG.exception("the driver failed")
        text = str(error) if isinstance(error, TfyError) else traceback.format_exc()
        application.shutdown("FAILED", f"the driver failed: {text}"[:_DIAGNOSTICS_LIMIT])
        return 1
    succeeded = report.cause is None
    diagnostics = f"{plan.name}: {report.state.value}" if report.cause is None else report.cause
    application.shutdown("SUCCEEDED" if succeeded else "FAILED", diagnostics[:_DIAGNOSTICS_LIMIT])
    return 0


def _drive(plan: Plan, container: identity.ContainerIdentity, application: SkeinRendezvous) -> JobReport:
    from tfy.runtime.driver import Driver
    from tfy.runtime.publisher import Publisher
    from tfy.runtime.spark import SparkHost, make_spark_settings
    from tfy.storage.hadoop_conf import read_properties
    from tfy.storage.hdfs import Storage

    job_dir = JobDir(plan.job_dir)
    properties = read_properties(container.work_dir / contract.LOCAL_HADOOP_CONF)
    storage = Storage(properties["fs.defaultFS"], properties)
    publisher = Publisher(lambda data: storage.publish(job_dir.status, data))
    publisher.start()
    spark = SparkHost(plan, make_spark_settings(plan, container))
    report = Driver(plan, container.application_id, application, spark, publisher.offer).run()
    publisher.close()
    try:
        storage.publish(job_dir.result, contract.to_json(report))
    except UnreachableError as error:
        # The job's end does not hang on its history: YARN is told all the same.
        _LOG.error("the job's result could not be written: %s", error)
    return report


if __name__ == "__main__":
    sys.exit(main(sys.argv, os.environ))
