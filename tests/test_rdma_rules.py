"""`rdma: required` is refused before anything is sent where nothing of the job could use RDMA."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.job_files import SMALLEST, load_text, make_folder
from tests.test_plan import SITE
from tfy.errors import SpecError
from tfy.plan import make_plan
from tfy.rdma_rules import explain_rdma
from tfy.spec import ContainerSpec, JobSpec, Rdma, Strategy, TaskSpec, TaskType

# Task type, instances, GPUs of each.
Tasks = tuple[tuple[TaskType, int, int], ...]


def job(folder: Path, strategy: Strategy, rdma: Rdma, tasks: Tasks) -> JobSpec:
    specs = tuple(
        TaskSpec(
            type=task_type,
            instances=instances,
            container=ContainerSpec(memory_mib=2048, vcores=1, gpus=gpus),
        )
        for task_type, instances, gpus in tasks
    )
    return replace(load_text(make_folder(folder), SMALLEST), strategy=strategy, rdma=rdma, tasks=specs)


@pytest.mark.parametrize(
    ("strategy", "tasks", "said"),
    [
        ("parameter_server", (("worker", 2, 1), ("ps", 1, 0)), r"gRPC over TCP.*no RDMA"),
        ("multi_worker_mirrored", (("worker", 2, 0),), "no task asks for any"),
        ("multi_worker_mirrored", (("worker", 1, 8),), "only one task has GPUs"),
        ("none", (("worker", 2, 0),), "no task asks for any"),
        # The evaluator takes no part in collectives.
        ("none", (("worker", 1, 1), ("evaluator", 1, 1)), "only one task has GPUs"),
    ],
)
def test_required_is_refused_where_no_transport_can_use_it(
    strategy: Strategy, tasks: Tasks, said: str, tmp_path: Path
) -> None:
    (line,) = explain_rdma(job(tmp_path, strategy, "required", tasks))
    assert line.startswith("rdma: required, but no transport of this job can use it: ")
    assert re.search(said, line)
    assert "accepted: off or preferred" in line


@pytest.mark.parametrize(
    ("strategy", "rdma", "tasks"),
    [
        ("multi_worker_mirrored", "required", (("worker", 2, 1),)),
        ("none", "required", (("chief", 1, 1), ("worker", 1, 1))),
        ("parameter_server", "preferred", (("worker", 2, 1), ("ps", 1, 0))),
        ("parameter_server", "off", (("worker", 2, 0), ("ps", 1, 0))),
    ],
)
def test_other_jobs_are_accepted(strategy: Strategy, rdma: Rdma, tasks: Tasks, tmp_path: Path) -> None:
    assert explain_rdma(job(tmp_path, strategy, rdma, tasks)) == []


def test_the_plan_refuses_with_the_files_name(tmp_path: Path) -> None:
    spec = load_text(make_folder(tmp_path), SMALLEST + "rdma: required\n")
    with pytest.raises(SpecError, match=r"^job\.yaml: rdma: required, but no transport"):
        make_plan(spec, SITE, "0b5c")
