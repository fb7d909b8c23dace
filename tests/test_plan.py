"""JobSpec → Plan: roles, rounding, Spark's sizes, and what a cluster cannot give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.job_files import FULL, SMALLEST, load_text, make_folder
from tfy.contract import from_json, to_json
from tfy.errors import SpecError
from tfy.plan import SiteFacts, list_containers, make_plan, sum_containers
from tfy.plan_model import ContainerPlan, InputPlan, Plan, SparkPlan, StagedFile

SITE = SiteFacts(
    default_fs="hdfs://namenode:8020/",
    user="ada",
    python="/opt/python/bin/python",
    minimum_allocation_mib=1024,
    maximum_allocation_mib=8192,
    maximum_vcores=4,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job's folder without its job.yaml."""
    return make_folder(tmp_path)


def plan_text(folder: Path, text: str, site: SiteFacts = SITE) -> Plan:
    return make_plan(load_text(folder, text), site, "0b5c")


def test_under_parameter_server_the_program_runs_on_the_chief(folder: Path) -> None:
    plan = plan_text(folder, FULL)
    roles = [(task.type, task.instances, task.hosted, task.runs) for task in plan.tasks]
    assert roles == [
        ("chief", 1, "service", "program"),
        ("worker", 4, "executor", "server"),
        ("ps", 2, "service", "server"),
        ("evaluator", 1, "service", "program"),
    ]
    names = ("chief:0", "worker:0", "worker:1", "worker:2", "worker:3", "ps:0", "ps:1", "evaluator:0")
    assert plan.task_names() == names


def test_what_the_job_says_is_carried_over(folder: Path) -> None:
    plan = plan_text(folder, FULL)
    assert (plan.name, plan.user, plan.queue, plan.strategy) == (
        "digits",
        "ada",
        "root.ml",
        "parameter_server",
    )
    assert plan.job_dir == "hdfs://namenode:8020/user/ada/.tfy/0b5c"
    assert (plan.python, plan.program) == ("/opt/python/bin/python", "train.py")
    assert plan.args[:2] == ("--epochs", "3")
    assert plan.env == (("A", "1"), ("B", "ada"))
    assert plan.input == InputPlan(
        paths=("hdfs:///data/train/*.tfrecord", "viewfs://cluster/data/more"),
        shard="record",
        unequal="repeat",
        seed=7,
        task_type="worker",
    )
    assert (plan.export_dir, plan.export_keep, plan.rdma) == ("hdfs://ns1/serving/ada", 2, "preferred")
    assert (plan.checkpoint_dir, plan.checkpoint_keep) == ("hdfs://ns1/models/ada", 5)
    assert (plan.start_timeout_s, plan.total_timeout_s, plan.evaluate_timeout_s) == (120, 21600, 60)
    worker = plan.task("worker").container
    assert (worker.gpus, worker.node_label, plan.task("chief").container.gpus) == (2, "gpu", 0)


def test_staged_files(folder: Path) -> None:
    assert plan_text(folder, SMALLEST).staged == (
        StagedFile(name="tfy.zip", local_name="tfy_code", archive=True),
        StagedFile(name="program.zip", local_name="program", archive=True),
        StagedFile(name="hadoop_conf.zip", local_name="hadoop_conf", archive=True),
        StagedFile(name="plan.json", local_name="plan.json", archive=False),
    )
    assert plan_text(folder, FULL).staged[-1] == StagedFile(
        name="input.json", local_name="input.json", archive=False
    )


def test_memory_is_rounded_up_as_the_scheduler_does(folder: Path) -> None:
    text = SMALLEST.replace("2 GiB", "2500 MiB")
    worker = plan_text(folder, text).task("worker").container
    assert worker == ContainerPlan(memory_mib=2500, allocated_mib=3072, vcores=1)
    fine = plan_text(folder, text, replace(SITE, minimum_allocation_mib=1)).task("worker").container
    assert fine.allocated_mib == 2500
    # The maximum need not be a multiple of the minimum: the scheduler then stops at the maximum.
    odd = plan_text(folder, text, replace(SITE, maximum_allocation_mib=2600)).task("worker").container
    assert odd.allocated_mib == 2600


@pytest.mark.parametrize(("driver", "heap_mib"), [("1 GiB", 480), ("2 GiB", 1504)])
def test_spark_shares_the_containers(folder: Path, driver: str, heap_mib: int) -> None:
    spark = plan_text(folder, SMALLEST + f"  driver: {{memory: {driver}}}\n").spark
    assert spark == SparkPlan(
        am=ContainerPlan(memory_mib=768, allocated_mib=1024, vcores=1),
        am_heap_mib=384,
        executor_heap_mib=512,
        executor_overhead_mib=2048 - 512,
        driver_heap_mib=heap_mib,
    )


def test_what_no_container_can_have_is_refused_with_both_numbers(folder: Path) -> None:
    text = FULL.replace("chief: {memory: 4g}", "chief: {memory: 500 GiB, vcores: 5}")
    with pytest.raises(SpecError) as refused:
        plan_text(folder, text, replace(SITE, maximum_allocation_mib=3000))
    assert refused.value.message.split("\n") == [
        "job.yaml: tasks.chief.memory: 500 GiB is more than this cluster gives one container: "
        "3000 MiB (yarn.scheduler.maximum-allocation-mb)",
        "job.yaml: tasks.chief.vcores: 5 is more than this cluster gives one container: "
        "4 (yarn.scheduler.maximum-allocation-vcores)",
        "job.yaml: tasks.worker.memory: 3 GiB is more than this cluster gives one container: "
        "3000 MiB (yarn.scheduler.maximum-allocation-mb)",
    ]


def test_the_rows_for_a_person_and_their_sum(folder: Path) -> None:
    rows = list_containers(plan_text(folder, FULL))
    assert [(row.container, row.count, row.memory_mib, row.allocated_mib, row.vcores) for row in rows] == [
        ("chief", 1, 4096, 4096, 3),
        ("worker", 4, 3072, 3072, 3),
        ("ps", 2, 1024, 1024, 2),
        ("evaluator", 1, 2048, 2048, 1),
        ("driver", 1, 1536, 2048, 2),
        ("spark am", 1, 768, 1024, 1),
    ]
    total = sum_containers(rows)
    assert (total.count, total.memory_mib, total.allocated_mib, total.vcores) == (10, 22784, 23552, 23)
    assert total.gpus == 4 * 2 + 1


def test_the_plan_travels_as_json(folder: Path) -> None:
    plan = plan_text(folder, FULL)
    assert from_json(to_json(plan), Plan) == plan


MIRRORED = """\
name: digits
program: train.py
strategy: multi_worker_mirrored
tasks: {worker: {instances: 2, memory: 2 GiB}}
"""


def test_under_multi_worker_mirrored_the_program_runs_on_every_worker(folder: Path) -> None:
    plan = plan_text(folder, MIRRORED)
    assert [(task.type, task.hosted, task.runs) for task in plan.tasks] == [("worker", "executor", "program")]
    assert plan.lead == "worker:0"


def test_under_none_the_program_runs_on_every_task(folder: Path) -> None:
    plan = plan_text(folder, SMALLEST + "  chief: {memory: 1 GiB}\nstrategy: none\n")
    assert [(task.type, task.hosted, task.runs) for task in plan.tasks] == [
        ("chief", "service", "program"),
        ("worker", "executor", "program"),
        ("ps", "service", "program"),
    ]
    assert plan.lead == "chief:0"


def test_a_job_without_workers_has_no_spark(folder: Path) -> None:
    text = "name: a\nprogram: train.py\nstrategy: none\ntasks: {chief: {memory: 1 GiB}}\n"
    plan = plan_text(folder, text + 'input: {paths: ["hdfs:///d"]}\n')
    assert plan.spark is None
    assert [row.container for row in list_containers(plan)] == ["chief", "driver"]
    assert plan.input is not None
    assert plan.input.task_type == "chief"


@pytest.mark.parametrize(
    ("text", "has_tf_keras", "expected"),
    [
        (MIRRORED, True, (("TF_USE_LEGACY_KERAS", "1"),)),
        (MIRRORED, False, ()),
        (MIRRORED + 'env: {TF_USE_LEGACY_KERAS: "0"}\n', True, (("TF_USE_LEGACY_KERAS", "0"),)),
        (SMALLEST, True, ()),
    ],
)
def test_the_keras_that_a_strategy_needs_is_chosen(
    folder: Path, text: str, has_tf_keras: bool, expected: tuple[tuple[str, str], ...]
) -> None:
    assert plan_text(folder, text, replace(SITE, legacy_keras=has_tf_keras)).env == expected
