"""TF_CONFIG, exactly."""

from __future__ import annotations

import json

import pytest

from tfy.errors import InternalError
from tfy.records import TaskRecord
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


Registered = tuple[tuple[str, str], ...]

# layout → each task's address, in the order in which nodes happen to register; the cluster of TF_CONFIG
LAYOUTS: dict[str, tuple[Registered, dict[str, list[str]]]] = {
    "chief, worker, ps": (
        (("ps:0", "10.0.0.3:1"), ("worker:0", "10.0.0.2:1"), ("chief:0", "10.0.0.1:1")),
        {"chief": ["10.0.0.1:1"], "ps": ["10.0.0.3:1"], "worker": ["10.0.0.2:1"]},
    ),
    "two of each, no chief (TensorFlowOnSpark#587)": (
        (("ps:1", "h2:3"), ("worker:1", "h2:2"), ("ps:0", "h1:3"), ("worker:0", "h1:2")),
        {"ps": ["h1:3", "h2:3"], "worker": ["h1:2", "h2:2"]},
    ),
    "mirrored workers and an evaluator": (
        (("evaluator:0", "h3:1"), ("worker:1", "h2:1"), ("worker:0", "h1:1")),
        {"worker": ["h1:1", "h2:1"]},
    ),
    "a chief alone": ((("chief:0", "h1:1"),), {"chief": ["h1:1"]}),
    "ps and evaluator beside a chief": (
        (("evaluator:0", "h4:1"), ("ps:0", "h3:1"), ("chief:0", "h1:1"), ("worker:0", "h2:1")),
        {"chief": ["h1:1"], "ps": ["h3:1"], "worker": ["h2:1"]},
    ),
    "one host is the beginning of another's name": (
        (("worker:1", "10.0.0.10:5"), ("worker:0", "10.0.0.1:50"), ("ps:0", "10.0.0.1:5")),
        {"ps": ["10.0.0.1:5"], "worker": ["10.0.0.1:50", "10.0.0.10:5"]},
    ),
    "twelve workers on two hosts": (
        tuple(
            (f"worker:{index}", f"10.0.0.{1 if index % 2 else 10}:{4000 + index}")
            for index in (11, 2, 10, 0, 9, 1, 8, 3, 7, 4, 6, 5)
        ),
        {"worker": [f"10.0.0.{1 if index % 2 else 10}:{4000 + index}" for index in range(12)]},
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout(layout: str) -> None:
    registered, expected = LAYOUTS[layout]
    records = []
    for task, address in registered:
        host, _, port = address.partition(":")
        records.append(TaskRecord(task=task, state=TaskState.REGISTERED, host=host, port=int(port)))
    spec = make_cluster_spec(records)
    for task, address in registered:
        task_type, _, index = task.partition(":")
        config = json.loads(make_tf_config(spec, task_type, int(index)))
        assert config == {"cluster": expected, "task": {"type": task_type, "index": int(index)}}
        if task_type != "evaluator":
            # Where the task finds itself.
            assert config["cluster"][task_type][int(index)] == address


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tensorflow_reads_every_layout(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tf = pytest.importorskip("tensorflow")
    registered, expected = LAYOUTS[layout]
    spec = {task_type: tuple(addresses) for task_type, addresses in expected.items()}
    task_type, _, index = registered[0][0].partition(":")
    monkeypatch.setenv("TF_CONFIG", make_tf_config(spec, task_type, int(index)))
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    assert resolver.cluster_spec().as_dict() == expected
    assert (resolver.task_type, resolver.task_id) == (task_type, int(index))
