"""The tf.distribute strategy of a job, made in the program's own process."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tfy.contract import SIDE_TASKS, task_name
from tfy.errors import SpecError, StartError
from tfy.plan_model import Plan
from tfy.runtime import filesystem

if TYPE_CHECKING:
    import tensorflow as tf

_CONNECT_TIMEOUT_S = 2.0
_RETRY_S = 0.2


def make_strategy(
    plan: Plan,
    task_type: str,
    timeout_s: float,
    partitioner: tf.distribute.experimental.partitioners.Partitioner | None = None,
) -> tf.distribute.Strategy:
    """The strategy that job.yaml names, connected to the job's tasks; TensorFlow's default on an evaluator.

    Raises StartError that names the servers which do not answer within `timeout_s` seconds, and SpecError
    where the job has none.
    """
    import tensorflow as tf

    filesystem.register()
    if task_type in SIDE_TASKS:
        return tf.distribute.get_strategy()
    if partitioner is not None and plan.strategy != "parameter_server":
        raise SpecError(
            f"job.strategy(variable_partitioner=…) needs ps, which `strategy: {plan.strategy}` has not"
        )
    if plan.strategy == "multi_worker_mirrored":
        return _make_mirrored(plan)
    if plan.strategy == "parameter_server":
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        wait_for_servers(_servers(resolver.cluster_spec().as_dict()), timeout_s)
        return tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
    raise SpecError(
        f"job.strategy() makes the strategy of job.yaml, which has `strategy: {plan.strategy}`",
        hint="the program makes its own from TF_CONFIG, or job.yaml names another",
    )


def _make_mirrored(plan: Plan) -> tf.distribute.MultiWorkerMirroredStrategy:
    """Workers find one another by TF_CONFIG; gradients of GPUs go by NCCL, those of CPUs by a gRPC ring."""
    import tensorflow as tf

    ways = tf.distribute.experimental.CommunicationImplementation
    chosen = ways.NCCL if plan.task("worker").container.gpus else ways.RING
    return tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=tf.distribute.experimental.CommunicationOptions(implementation=chosen)
    )


def _servers(cluster: Mapping[str, list[str]]) -> dict[str, str]:
    """Task name to host:port of all tasks that run TensorFlow's built-in server."""
    return {
        task_name(task_type, index): address
        for task_type in ("ps", "worker")
        for index, address in enumerate(cluster.get(task_type, []))
    }


def wait_for_servers(servers: Mapping[str, str], timeout_s: float) -> None:
    """Wait until every server (task name to host:port) accepts a connection.

    Raises StartError after `timeout_s` seconds, naming each that did not and why. TensorFlow
    itself would wait for them without an end and without a word.
    """
    deadline = time.monotonic() + timeout_s
    missing = {task: f"{address}: not tried" for task, address in servers.items()}
    while missing:
        for task in list(missing):
            error = _connection_error(servers[task], deadline)
            if error is None:
                del missing[task]
            else:
                missing[task] = f"{servers[task]}: {error}"
        if missing and time.monotonic() >= deadline:
            listed = "; ".join(f"{task} at {reason}" for task, reason in missing.items())
            raise StartError(f"no connection within {timeout_s:g} s to {listed}")
        if missing:
            time.sleep(_RETRY_S)


def _connection_error(address: str, deadline: float) -> str | None:
    host, _, port = address.rpartition(":")
    limit_s = max(0.1, min(_CONNECT_TIMEOUT_S, deadline - time.monotonic()))
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=limit_s).close()
    except OSError as error:
        return error.strerror or str(error)
    return None
