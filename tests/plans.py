"""A small plan for tests, and its parts."""

from __future__ import annotations

from dataclasses import replace

from tfy.plan import STAGED
from tfy.plan_model import ContainerPlan, InputPlan, Plan, SparkPlan, TaskPlan

CONTAINER = ContainerPlan(memory_mib=1024, allocated_mib=1024, vcores=1)


EVALUATOR = TaskPlan(type="evaluator", instances=1, container=CONTAINER, hosted="service", runs="program")


def make_mirrored_plan(*, workers: int = 2, evaluator: bool = False) -> Plan:
    """The program on every worker, and beside them an evaluator where there is to be one."""
    worker = TaskPlan(
        type="worker", instances=workers, container=CONTAINER, hosted="executor", runs="program"
    )
    tasks = (worker, EVALUATOR) if evaluator else (worker,)
    return replace(make_small_plan(), strategy="multi_worker_mirrored", tasks=tasks)


def make_small_plan(
    *, workers: int = 2, ps: int = 1, start_timeout_s: int = 60, python: str = "python3"
) -> Plan:
    """One chief, `workers` workers and `ps` parameter servers, submitted by nobody."""
    return Plan(
        submission_id="0d3d1c2e-0000-4000-8000-000000000000",
        name="small",
        user="nobody",
        queue="default",
        strategy="parameter_server",
        job_dir="hdfs://nn:8020/user/nobody/.tfy/0d3d1c2e-0000-4000-8000-000000000000",
        python=python,
        program="train.py",
        args=(),
        env=(("FLAG", "1"),),
        tasks=(
            TaskPlan(type="chief", instances=1, container=CONTAINER, hosted="service", runs="program"),
            TaskPlan(type="worker", instances=workers, container=CONTAINER, hosted="executor", runs="server"),
            TaskPlan(type="ps", instances=ps, container=CONTAINER, hosted="service", runs="server"),
        ),
        driver=CONTAINER,
        spark=SparkPlan(
            am=replace(CONTAINER, memory_mib=768, allocated_mib=768),
            am_heap_mib=384,
            executor_heap_mib=512,
            executor_overhead_mib=512,
            driver_heap_mib=384,
        ),
        staged=STAGED,
        input=InputPlan(
            paths=("hdfs:///data/*.tfrecord",), shard="auto", unequal="repeat", seed=0, task_type="worker"
        ),
        rdma="off",
        checkpoint_dir="hdfs:///models/small",
        checkpoint_keep=3,
        fresh=False,
        export_dir=None,
        export_keep=3,
        start_timeout_s=start_timeout_s,
        total_timeout_s=3600,
        evaluate_timeout_s=60,
    )
