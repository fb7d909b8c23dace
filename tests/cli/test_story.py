"""What a follower tells."""

from __future__ import annotations

from dataclasses import replace

from tests.views import make_report, make_view
from tfy.cli import story
from tfy.records import InputProgress, Metric, Progress, TaskRecord
from tfy.shares import InputReport
from tfy.states import ApplicationState, JobState, TaskState


def task(name: str, state: TaskState, **more: object) -> TaskRecord:
    return TaskRecord(task=name, state=state, host="h1", **more)  # type: ignore[arg-type]


def test_only_what_is_new_is_told() -> None:
    first = make_view(report=make_report(JobState.STARTING, TaskRecord(task="ps:0", state=TaskState.WAITING)))
    second = make_view(
        report=make_report(JobState.RUNNING, task("ps:0", TaskState.RUNNING), phase="training")
    )
    assert story.tell_changes(None, first) == ["training"]
    assert story.tell_changes(first, second) == ["ps:0 running on h1"]
    assert story.tell_changes(second, second) == []


def test_phases_before_the_driver_speaks() -> None:
    assert "queue default" in story.describe_phase(make_view(ApplicationState.ACCEPTED))
    assert story.describe_phase(make_view()) == "starting the driver"
    assert story.describe_phase(make_view(ApplicationState.KILLED, "killed")) == "killed"


def test_a_failed_task_is_told_with_its_first_line() -> None:
    record = task("chief:0", TaskState.FAILED, error="exit code 1\nTraceback…")
    assert story.describe_task(record) == "chief:0 failed on h1: exit code 1"


def test_progress_and_figures() -> None:
    chief = Progress(
        steps=200,
        metrics=(Metric(name="loss", value=0.123456), Metric(name="norm", value="nan")),
        checkpoint="hdfs:///m/ckpt-1",
    )
    report = make_report(
        JobState.RUNNING,
        task("chief:0", TaskState.RUNNING, progress=chief),
        task("worker:0", TaskState.RUNNING, progress=Progress(steps=99, bytes_read=12345, reads=3)),
        TaskRecord(task="worker:1", state=TaskState.REQUESTED),
    )
    assert story.describe_progress(report) == "step 200  loss 0.1235  norm nan  worker:0 99 steps"
    assert story.tell_figures(report) == [
        ("loss", "0.1235"),
        ("norm", "nan"),
        ("checkpoint", "hdfs:///m/ckpt-1"),
        ("worker:0", "on h1: read 12,345 bytes in 3 reads, ran 99 steps"),
    ]
    assert story.describe_progress(None) == ""


def test_the_last_line() -> None:
    done = make_view(ApplicationState.FINISHED, "succeeded")
    assert story.describe_end(done) == "digits succeeded in 1 min 30 s (application_1_1)"
    failed = make_view(
        ApplicationState.FINISHED,
        "failed",
        report=make_report(JobState.FAILED, cause="chief:0 failed: exit code 1\nTraceback"),
    )
    assert story.describe_end(failed) == (
        "digits failed in 1 min 30 s: chief:0 failed: exit code 1 (application_1_1)"
    )


def metrics(**values: float) -> tuple[Metric, ...]:
    return tuple(Metric(name=name, value=value) for name, value in values.items())


def test_what_all_workers_say_is_told_once_and_the_evaluator_by_its_name() -> None:
    same = Progress(steps=300, metrics=metrics(loss=0.5), checkpoint="hdfs:///m/ckpt-1")
    report = make_report(
        JobState.RUNNING,
        task("worker:0", TaskState.RUNNING, progress=same),
        task("worker:1", TaskState.RUNNING, progress=Progress(steps=300, metrics=metrics(loss=0.5, rank=1))),
        task("evaluator:0", TaskState.RUNNING, progress=Progress(steps=200, metrics=metrics(loss=0.75))),
    )
    assert story.describe_progress(report) == (
        "step 300  loss 0.5  worker:1 rank 1  evaluator:0 loss 0.75  worker:0 300 steps  worker:1 300 steps"
    )
    assert story.tell_figures(report)[:4] == [
        ("loss", "0.5"),
        ("worker:1 rank", "1"),
        ("evaluator:0 loss", "0.75"),
        ("checkpoint", "hdfs:///m/ckpt-1"),
    ]


def test_what_was_read_of_the_input() -> None:
    told = InputReport(
        shares="2 files, 4.0 kB, 2 shares of 1 file",
        task_type="worker",
        epoch="each of 201 records read exactly once",
        records=(100, 101),
        exact=True,
    )
    tasks = [
        task(f"worker:{index}", TaskState.RUNNING, progress=Progress(input=InputProgress(records=records)))
        for index, records in enumerate((1200, 0))
    ]
    report = replace(make_report(JobState.RUNNING, *tasks), input=told)
    assert story.tell_figures(report)[:3] == [
        ("input", "2 files, 4.0 kB, 2 shares of 1 file"),
        ("records read", "1,200 (worker:0 1,200, worker:1 0)"),
        ("first epoch", "each of 201 records read exactly once"),
    ]
    silent = replace(
        make_report(JobState.RUNNING, TaskRecord(task="worker:0", state=TaskState.RUNNING)), input=told
    )
    assert story.tell_figures(silent) == [("input", "2 files, 4.0 kB, 2 shares of 1 file")]


def test_an_evaluators_trouble_is_in_the_last_line() -> None:
    report = make_report(
        JobState.SUCCEEDED,
        task("chief:0", TaskState.SUCCEEDED),
        task("evaluator:0", TaskState.FAILED, error="exit code 1: KeyError: 'x'\nTraceback"),
    )
    done = make_view(ApplicationState.FINISHED, "succeeded", report=report)
    assert story.describe_end(done) == (
        "digits succeeded in 1 min 30 s, but evaluator:0 failed on h1: exit code 1: KeyError: 'x' "
        "(application_1_1)"
    )
