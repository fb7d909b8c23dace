"""The cluster spec and TF_CONFIG, from what the nodes registered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from tfy.contract import SIDE_TASKS, type_of_task
from tfy.errors import InternalError
from tfy.records import TaskRecord

ClusterSpec = Mapping[str, tuple[str, ...]]


def make_cluster_spec(records: Iterable[TaskRecord]) -> ClusterSpec:
    """Addresses by task type, in the order of the task's index (`worker:2` before `worker:10`)."""
    by_type: dict[str, dict[int, str]] = {}
    for record in records:
        task_type, index = type_of_task(record.task), record.task.rpartition(":")[2]
        if task_type in SIDE_TASKS:
            continue
        if record.host is None or record.port is None:
            raise InternalError(f"{record.task} registered without an address")
        by_type.setdefault(task_type, {})[int(index)] = f"{record.host}:{record.port}"
    return {
        task_type: tuple(address for _, address in sorted(by_type[task_type].items()))
        for task_type in sorted(by_type)
    }


def make_tf_config(cluster: ClusterSpec, task_type: str, index: int) -> str:
    """TF_CONFIG for one task, as TensorFlow's TFConfigClusterResolver reads it."""
    return json.dumps({"cluster": cluster, "task": {"type": task_type, "index": index}})
