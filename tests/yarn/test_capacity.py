"""What no cluster of this size could hold is refused with both numbers, all of it at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.plans import make_small_plan
from tfy.errors import EXIT_SPEC, EXIT_UNREACHABLE, SpecError, UnreachableError
from tfy.plan_model import Plan
from tfy.yarn.capacity import NodeFacts, check_capacity


def node(
    number: int = 2, *, gpus: int = 0, labels: tuple[str, ...] = (), state: str = "running"
) -> NodeFacts:
    return NodeFacts(
        host=f"127.0.0.{number}",
        web=f"127.0.0.{number}:8042",
        labels=labels,
        state=state,
        memory_mib=4096,
        vcores=8,
        gpus=gpus,
    )


def ask(**of_type: object) -> Plan:
    """The small plan (a chief, 2 workers, a ps), some of its containers' fields changed."""
    plan = make_small_plan()
    tasks = tuple(
        replace(task, container=replace(task.container, **of_type.get(task.type, {})))  # type: ignore[arg-type]
        for task in plan.tasks
    )
    return replace(plan, tasks=tasks)


def refusals(plan: Plan, *nodes: NodeFacts) -> list[str]:
    with pytest.raises(SpecError) as refused:
        check_capacity(plan, nodes)
    assert refused.value.exit_status == EXIT_SPEC
    return refused.value.message.split("\n")


@pytest.mark.parametrize(
    ("worker", "nodes", "said"),
    [
        # TonY#24: 16 GPUs where 2 are.
        (
            {"gpus": 16},
            (node(2), node(9, gpus=2)),
            "tasks.worker.gpus: 16 asked, the largest NodeManager offers 2",
        ),
        (
            {"gpus": 1},
            (node(2), node(3)),
            "tasks.worker.gpus: 1 asked, this cluster has no GPU: 2 NodeManagers, none offers yarn.io/gpu",
        ),
        # Three in all, but no two of them at one NodeManager but the first.
        (
            {"gpus": 2},
            (node(2, gpus=2), node(3, gpus=1)),
            "tasks.worker.gpus: 2 asked by each of 2 tasks, "
            "the NodeManagers have room for 1 such (3 GPUs on 2 NodeManagers)",
        ),
        (
            {"node_label": "gpu"},
            (node(2, labels=("big",)), node(3, labels=("a", "big"))),
            "tasks.worker.node_label: no running NodeManager carries gpu; labels of this cluster: a, big",
        ),
        (
            {"node_label": "gpu"},
            (node(2),),
            "tasks.worker.node_label: no running NodeManager carries gpu; no NodeManager has a label",
        ),
        # The GPUs are elsewhere.
        (
            {"node_label": "big", "gpus": 1},
            (node(2, labels=("big",)), node(3, gpus=4)),
            "tasks.worker.gpus: 1 asked, the largest NodeManager labelled big offers 0",
        ),
        (
            {"memory_mib": 5000, "allocated_mib": 5120},
            (node(2),),
            "tasks.worker.memory: 5000 MiB asked (rounded up by YARN to 5 GiB), "
            "the largest NodeManager offers 4 GiB",
        ),
        ({"vcores": 9}, (node(2),), "tasks.worker.vcores: 9 asked, the largest NodeManager offers 8"),
    ],
)
def test_what_no_node_manager_holds_is_refused_with_both_numbers(
    worker: dict[str, object], nodes: tuple[NodeFacts, ...], said: str
) -> None:
    assert refusals(ask(worker=worker), *nodes) == [said]


def test_no_gpu_may_mean_that_none_is_seen() -> None:
    with pytest.raises(SpecError) as refused:
        check_capacity(ask(worker={"gpus": 1}), (node(2),))
    assert refused.value.hint is not None
    assert "resource-types.xml" in refused.value.hint
    with pytest.raises(SpecError) as refused:
        check_capacity(ask(worker={"gpus": 3}), (node(2, gpus=1),))
    assert refused.value.hint is None


def test_every_problem_is_told_at_once() -> None:
    told = refusals(
        ask(worker={"gpus": 3, "vcores": 9}, ps={"node_label": "x"}, chief={"gpus": 1}), node(gpus=2)
    )
    assert told == [
        "tasks.worker.vcores: 9 asked, the largest NodeManager offers 8",
        "tasks.worker.gpus: 3 asked, the largest NodeManager offers 2",
        "tasks.ps.node_label: no running NodeManager carries x; no NodeManager has a label",
    ]


def test_task_types_share_the_gpus() -> None:
    both = {"gpus": 1}
    assert refusals(ask(worker=both, chief=both), node(gpus=2)) == [
        "tasks: 3 GPUs asked at once (tasks.chief 1 x 1, tasks.worker 2 x 1), this cluster has 2"
    ]
    check_capacity(ask(worker=both, chief=both), (node(gpus=2), node(3, gpus=1)))


def test_node_managers_of_a_label_share_theirs() -> None:
    labelled = {"gpus": 1, "node_label": "a"}
    nodes = (node(2, gpus=2, labels=("a",)), node(3, gpus=8))
    assert refusals(ask(worker=labelled, chief=labelled), *nodes) == [
        "tasks: 3 GPUs asked at once (tasks.chief 1 x 1, tasks.worker 2 x 1), "
        "the NodeManagers labelled a offer 2"
    ]


def test_the_driver_and_sparks_master_count_too() -> None:
    plan = make_small_plan()
    big = replace(plan.driver, memory_mib=8192, allocated_mib=8192)
    assert plan.spark is not None
    plan = replace(plan, driver=big, spark=replace(plan.spark, am=big))
    assert refusals(plan, node()) == [
        "tasks.driver.memory: 8 GiB asked, the largest NodeManager offers 4 GiB",
        "Spark's application master.memory: 8 GiB asked, the largest NodeManager offers 4 GiB",
    ]


def test_only_running_node_managers_count() -> None:
    check_capacity(make_small_plan(), (node(2), node(3, state="lost")))
    with pytest.raises(UnreachableError, match="no running NodeManager \\(1 known\\)") as refused:
        check_capacity(make_small_plan(), (node(3, state="lost"),))
    # A scheduler tries such a submit again.
    assert refused.value.exit_status == EXIT_UNREACHABLE
