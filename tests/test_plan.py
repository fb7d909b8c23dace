"""JobSpec → Plan: roles, rounding, Spark's sizes, and what a cluster cannot give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.job_files import FULL, SMALLEST, load_text, make_folder
from tfy.contract import ContainerPlan, Plan, SparkPlan, StagedFile, from_json, to_json
from tfy.errors import SpecError
from tfy.plan import SiteFacts, list_containers, make_plan, sum_containers

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
    ]
    names = ("chief:0", "worker:0", "worker:1", "worker:2", "worker:3", "ps:0", "ps:1")
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
    assert plan.input_paths == ("hdfs:///data/train/*.tfrecord", "viewfs://cluster/data/more")
    assert (plan.checkpoint_dir, plan.checkpoint_keep) == ("hdfs://ns1/models/ada", 5)
    assert (plan.start_timeout_s, plan.total_timeout_s) == (120, 21600)


def test_staged_files(folder: Path) -> None:
    assert plan_text(folder, SMALLEST).staged == (
        StagedFile(name="tfy.zip", local_name="tfy_code", archive=True),
        StagedFile(name="program.zip", local_name="program", archive=True),
        StagedFile(name="hadoop_conf.zip", local_name="hadoop_conf", archive=True),
        StagedFile(name="plan.json", local_name="plan.json", archive=False),
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
        ("driver", 1, 1536, 2048, 2),
        ("spark am", 1, 768, 1024, 1),
    ]
    total = sum_containers(rows)
    assert (total.count, total.memory_mib, total.allocated_mib, total.vcores) == (9, 20736, 21504, 22)


def test_the_plan_travels_as_json(folder: Path) -> None:
    plan = plan_text(folder, FULL)
    assert from_json(to_json(plan), Plan) == plan
