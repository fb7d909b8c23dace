"""What a program may ask of its job."""

from __future__ import annotations

import dataclasses
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.plans import make_mirrored_plan
from tfy.contract import to_json
from tfy.errors import InternalError, SpecError, StartError
from tfy.plan_model import ContainerPlan, InputPlan, Plan, SparkPlan, TaskPlan
from tfy.runtime import Task, current_job
from tfy.runtime.report import ReportReader
from tfy.runtime.strategy import wait_for_servers

CONTAINER = ContainerPlan(memory_mib=1024, allocated_mib=1024, vcores=1)
PLAN = Plan(
    submission_id="0b1c",
    name="digits",
    user="ada",
    queue="default",
    strategy="parameter_server",
    job_dir="hdfs:///user/ada/.tfy/0b1c",
    python="/opt/env/bin/python",
    program="train.py",
    args=(),
    env=(),
    tasks=(
        TaskPlan(type="ps", instances=1, container=CONTAINER, hosted="service", runs="server"),
        TaskPlan(type="worker", instances=3, container=CONTAINER, hosted="executor", runs="server"),
        TaskPlan(type="chief", instances=1, container=CONTAINER, hosted="service", runs="program"),
    ),
    driver=CONTAINER,
    spark=SparkPlan(
        am=CONTAINER, am_heap_mib=1, executor_heap_mib=1, executor_overhead_mib=1, driver_heap_mib=1
    ),
    staged=(),
    input=InputPlan(
        paths=("hdfs:///data/*.tfrecord",), shard="auto", unequal="repeat", seed=0, task_type="worker"
    ),
    rdma="off",
    checkpoint_dir="hdfs:///models/digits",
    checkpoint_keep=3,
    fresh=False,
    export_dir=None,
    export_keep=3,
    start_timeout_s=600,
    total_timeout_s=3600,
    evaluate_timeout_s=60,
)


def make_environ(folder: Path, plan: Plan = PLAN) -> dict[str, str]:
    plan_file = folder / "plan.json"
    plan_file.write_bytes(to_json(plan))
    return {
        "TFY_PLAN": str(plan_file),
        "TFY_TASK_TYPE": "chief",
        "TFY_TASK_INDEX": "0",
        "TFY_REPORT": str(folder / "report"),
    }


def test_the_job_is_that_of_the_plan(tmp_path: Path) -> None:
    job = current_job(make_environ(tmp_path))
    assert (job.name, job.submission_id) == ("digits", "0b1c")
    assert job.task == Task("chief", 0)
    assert str(job.task) == "chief:0"
    assert job.input_paths == ("hdfs:///data/*.tfrecord",)
    assert (job.checkpoint_dir, job.checkpoint_keep) == ("hdfs:///models/digits", 3)


def test_the_job_is_frozen(tmp_path: Path) -> None:
    job = current_job(make_environ(tmp_path))
    with pytest.raises(dataclasses.FrozenInstanceError):
        job.task = Task("worker", 1)  # type: ignore[misc]


@pytest.mark.parametrize("missing", ["TFY_PLAN", "TFY_TASK_TYPE", "TFY_TASK_INDEX", "TFY_REPORT"])
def test_outside_a_job_the_error_says_how_to_start(tmp_path: Path, missing: str) -> None:
    environ = make_environ(tmp_path)
    del environ[missing]
    with pytest.raises(SpecError, match=missing) as raised:
        current_job(environ)
    assert raised.value.hint is not None
    assert "tfy submit" in raised.value.hint


def test_a_plan_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"TFY_PLAN=.*nowhere.json"):
        current_job({**make_environ(tmp_path), "TFY_PLAN": str(tmp_path / "nowhere.json")})


def test_a_plan_that_is_none(tmp_path: Path) -> None:
    environ = make_environ(tmp_path)
    Path(environ["TFY_PLAN"]).write_text("{}")
    with pytest.raises(InternalError):
        current_job(environ)


@pytest.mark.parametrize("index", ["", "-1", "one", "1.0"])
def test_an_index_that_is_none(tmp_path: Path, index: str) -> None:
    with pytest.raises(SpecError, match="TFY_TASK_INDEX"):
        current_job({**make_environ(tmp_path), "TFY_TASK_INDEX": index})


def test_reports_reach_the_reader(tmp_path: Path) -> None:
    job = current_job(make_environ(tmp_path))
    job.report(step=100, loss=0.5)
    job.report(checkpoint="hdfs:///models/digits/ckpt-1", test_accuracy=0.96)
    progress = ReportReader(tmp_path / "report").poll()
    assert progress.steps == 100
    assert progress.checkpoint == "hdfs:///models/digits/ckpt-1"
    assert [(metric.name, metric.value) for metric in progress.metrics] == [
        ("loss", 0.5),
        ("test_accuracy", 0.96),
    ]


def test_a_report_that_is_no_number_names_the_argument(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="loss"):
        current_job(make_environ(tmp_path)).report(loss="low")  # type: ignore[arg-type]


def test_a_report_of_nothing_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="nothing"):
        current_job(make_environ(tmp_path)).report()


def test_another_strategy_is_refused(tmp_path: Path) -> None:
    plan = dataclasses.replace(PLAN, strategy="none")
    with pytest.raises(SpecError, match="strategy: none"):
        current_job(make_environ(tmp_path, plan)).strategy()


@pytest.fixture
def listening() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a port that is taken, on which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def test_servers_that_listen_are_not_waited_for(listening: str) -> None:
    wait_for_servers({"ps:0": listening, "worker:0": listening}, timeout_s=0)


def test_servers_that_do_not_listen_are_named(listening: str, silent: str) -> None:
    servers = {"ps:0": listening, "worker:0": silent, "worker:1": "unknown.invalid:1"}
    with pytest.raises(StartError) as raised:
        wait_for_servers(servers, timeout_s=0.3)
    assert f"worker:0 at {silent}: Connection refused" in raised.value.message
    assert "worker:1 at unknown.invalid:1: " in raised.value.message
    assert "ps:0" not in raised.value.message


def imported_by(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("statement", ["import tfy.runtime", "from tfy.runtime import current_job"])
def test_asking_for_the_job_loads_nothing_heavy(statement: str) -> None:
    assert not imported_by(statement) & {"tensorflow", "grpc", "pyspark", "numpy", "keras"}


def test_environ_defaults_to_the_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environ: Mapping[str, str] = make_environ(tmp_path)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert current_job().task == Task("chief", 0)


@pytest.mark.parametrize(("index", "told"), [("0", "hdfs:///m/ckpt-1"), ("1", None)])
def test_only_the_leads_checkpoint_is_the_jobs(tmp_path: Path, index: str, told: str | None) -> None:
    environ = make_environ(tmp_path, make_mirrored_plan())
    job = current_job({**environ, "TFY_TASK_TYPE": "worker", "TFY_TASK_INDEX": index})
    job.report(step=1, checkpoint="hdfs:///m/ckpt-1")
    progress = ReportReader(job.report_file).poll()
    assert (progress.steps, progress.checkpoint) == (1, told)


def test_only_an_evaluator_follows_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="this task is chief:0"):
        current_job(make_environ(tmp_path)).checkpoints(None)
