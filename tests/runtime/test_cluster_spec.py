"""TF_CONFIG, exactly."""

from __future__ import annotations

import json

import pytest

from tfy.contract import TaskRecord
from tfy.errors import InternalError
from tfy.runtime.cluster_spec import make_cluster_spec, make_tf_config
from tfy.states import TaskState


def record(task: str, port: int | None = 1) -> TaskRecord:
    return TaskRecord(task=task, state=TaskState.REGISTERED, host="h", port=port)


def test_addresses_stand_in_the_order_of_the_index() -> None:
    records = [record(f"worker:{index}", port=index) for index in (11, 2, 10, *range(2), *range(3, 10))]
    assert make_cluster_spec(records) == {"worker": tuple(f"h:{index}" for index in range(12))}


def test_evaluator_and_tensorboard_stay_outside() -> None:
    found = make_cluster_spec([record("chief:0"), record("evaluator:0"), record("tensorboard:0")])
    assert found == {"chief": ("h:1",)}


def test_a_task_without_address_is_an_error() -> None:
    with pytest.raises(InternalError, match="ps:0"):
        make_cluster_spec([record("ps:0", port=None)])


def test_tf_config() -> None:
    spec = make_cluster_spec([record("worker:1", 2), record("worker:0", 1), record("ps:0", 3)])
    assert json.loads(make_tf_config(spec, "worker", 1)) == {
        "cluster": {"ps": ["h:3"], "worker": ["h:1", "h:2"]},
        "task": {"type": "worker", "index": 1},
    }
