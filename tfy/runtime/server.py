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
from tfy.runtime.counting import make_counting

_WAKE_S = 60.0


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
    counting = make_counting(Path(environ[contract.ENV_REPORT]))
    while not stopped.wait(_WAKE_S):
        pass
    # The hook has it told all along, but this process ends without running exit handlers.
    counting.tell()
    del server
    return 0
