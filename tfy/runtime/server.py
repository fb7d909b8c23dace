"""TensorFlow's built-in server, as a worker or ps under parameter_server runs it.

The graphs that the chief sends run here, so hdfs:// is registered here, and what this process
read and counted is reported from here.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Mapping
from pathlib import Path

from tfy import contract
from tfy.runtime import filesystem
from tfy.runtime.report import Counters, append_report

_REPORT_EVERY_S = 0.5


def run_server(environ: Mapping[str, str]) -> int:
    """Serves until SIGTERM; the exit status."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda _signum, _frame: stopped.set())
    import tensorflow as tf

    filesystem.register()
    config = json.loads(environ[contract.ENV_TF_CONFIG])
    server = tf.distribute.Server(
        tf.train.ClusterSpec(config["cluster"]),
        job_name=config["task"]["type"],
        task_index=config["task"]["index"],
        protocol="grpc",
        start=True,
    )
    report = Path(environ[contract.ENV_REPORT])
    told = None
    while not stopped.wait(_REPORT_EVERY_S):
        told = _report(report, told)
    _report(report, told)
    del server
    return 0


def _report(path: Path, told: filesystem.Counters | None) -> filesystem.Counters:
    counters = filesystem.read_counters()
    if counters != told:
        append_report(
            path,
            counters=Counters(
                bytes_read=counters.bytes_read,
                reads=counters.reads,
                steps=counters.counts.get("steps", 0),
            ),
        )
    return counters
