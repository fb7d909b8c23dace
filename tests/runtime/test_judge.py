"""How a job ends: every case by its own figures, without a cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.plans import EVALUATOR, make_mirrored_plan, make_small_plan
from tfy.plan_model import Plan
from tfy.records import TaskRecord
from tfy.runtime.judge import (
    FINISH_S,
    SETTLE_LOST_PEER_S,
    SETTLE_S,
    Seen,
    Verdict,
    blame_executor,
    first_cause,
    judge,
    list_failed,
    merge_records,
)
from tfy.states import JobState, TaskState

PLAN = make_small_plan(workers=4)


def running(plan: Plan = PLAN, /, **states: TaskState) -> tuple[TaskRecord, ...]:
    """Every task of the plan runs, but for those named as `chief_0`."""
    return tuple(
        TaskRecord(
            task=name,
            state=states.get(name.replace(":", "_"), TaskState.RUNNING),
            host="host1",
            port=4000,
            ended=100.0,
        )
        for name in plan.task_names()
    )


def seen(tasks: tuple[TaskRecord, ...], **more: object) -> Seen:
    values: dict[str, object] = {
        "now": 10.0,
        "began": 0.0,
        "tasks": tasks,
        "executors": 4,
        **more,
    }
    return Seen(**values)  # type: ignore[arg-type]


def test_goes_on_while_all_run() -> None:
    assert judge(PLAN, seen(running())) is None


def test_succeeds_with_its_chief_whatever_the_servers_do() -> None:
    tasks = running(chief_0=TaskState.SUCCEEDED)
    assert judge(PLAN, seen(tasks)) == Verdict(state=JobState.SUCCEEDED)


def test_waits_a_moment_for_the_first_cause() -> None:
    tasks = running(chief_0=TaskState.FAILED)
    assert judge(PLAN, seen(tasks, first_failure=10.0 - SETTLE_S / 2)) is None


def test_a_servers_failure_goes_before_the_chiefs() -> None:
    tasks = running(chief_0=TaskState.FAILED, worker_1=TaskState.LOST)
    verdict = judge(PLAN, seen(tasks, first_failure=0.0))
    assert verdict is not None and verdict.cause is not None
    assert verdict.cause.startswith("worker:1 was lost on host1")
    assert "after it failed: chief:0" in verdict.cause
    assert not verdict.could_not_start


def test_a_program_that_lost_a_peer_waits_for_the_peers_end_to_be_told() -> None:
    tasks = tuple(
        replace(record, error="exit code 1: UnavailableError: failed to connect")
        if record.task == "chief:0"
        else record
        for record in running(chief_0=TaskState.FAILED)
    )
    assert judge(PLAN, seen(tasks, first_failure=10.0 - SETTLE_S)) is None
    late = judge(PLAN, seen(tasks, first_failure=10.0 - SETTLE_LOST_PEER_S))
    assert late is not None and late.cause is not None and late.cause.startswith("chief:0 failed")
    known = judge(PLAN, seen(tasks, first_failure=10.0 - SETTLE_S, spark_failure="executor 2 lost: memory"))
    assert known is not None
    assert known.cause == "executor 2 lost: memory\n(after it failed: chief:0)"


def test_spark_names_the_worker_that_it_lost() -> None:
    tasks = tuple(
        replace(record, container_id="container_1_2_01_000003") if record.task == "worker:2" else record
        for record in running()
    )
    text = "ExecutorLostFailure … container_1_2_01_000003 on host: h: Container killed by YARN for memory"
    blamed = blame_executor(PLAN, tasks, text, ended=9.0)
    assert [record.task for record in blamed if record.state is TaskState.LOST] == ["worker:2"]
    verdict = judge(PLAN, seen(blamed, first_failure=0.0, spark_failure=text))
    assert verdict is not None and verdict.cause is not None
    assert verdict.cause.startswith("worker:2 was lost on host1: ExecutorLostFailure")


def test_a_lost_task_keeps_the_time_of_its_loss() -> None:
    lost = TaskRecord(task="ps:0", state=TaskState.LOST, port=1, ended=5.0)
    told = {"ps:0": TaskRecord(task="ps:0", state=TaskState.RUNNING, port=1)}
    hosts = {"ps:0": TaskRecord(task="ps:0", state=TaskState.LOST, ended=9.0)}
    assert merge_records((lost,), told, hosts) == (lost,)
    late_word = {"ps:0": TaskRecord(task="ps:0", state=TaskState.FAILED, port=1, ended=4.0)}
    assert merge_records((lost,), late_word, hosts)[0].state is TaskState.FAILED


def test_missing_workers_are_named_at_the_start_limit() -> None:
    states = dict.fromkeys(("worker:0", "worker:1", "worker:2"), TaskState.ALLOCATED)
    states["worker:3"] = TaskState.REQUESTED
    waiting = tuple(
        TaskRecord(task=name, state=states.get(name, TaskState.WAITING)) for name in PLAN.task_names()
    )
    verdict = judge(PLAN, seen(waiting, now=61.0, executors=2))
    assert verdict is not None and verdict.cause is not None
    assert verdict.could_not_start
    assert "worker:3 not allocated: YARN granted 3 of 4 containers of 1024 MiB and 1 vcores" in verdict.cause
    assert "chief:0, ps:0 not asked for yet" in verdict.cause
    assert "worker:0, worker:1, worker:2 allocated, but not registered" in verdict.cause
    assert "1 min" in verdict.cause


def test_a_failure_before_all_registered_is_a_job_that_could_not_start() -> None:
    waiting = tuple(TaskRecord(task=name, state=TaskState.ALLOCATED) for name in PLAN.task_names())
    verdict = judge(PLAN, seen(waiting, first_failure=0.0, spark_failure="worker:1: its node ended"))
    assert verdict == Verdict(state=JobState.FAILED, cause="worker:1: its node ended", could_not_start=True)


def test_the_total_limit() -> None:
    verdict = judge(PLAN, seen(running(), now=3601.0))
    assert verdict == Verdict(state=JobState.FAILED, cause="not ended within timeouts.total (1 h)")


@pytest.mark.parametrize(
    ("told", "host", "expected"),
    [
        (TaskState.RUNNING, TaskState.LOST, TaskState.LOST),
        (TaskState.FAILED, TaskState.LOST, TaskState.FAILED),
        (TaskState.SUCCEEDED, TaskState.LOST, TaskState.SUCCEEDED),
        (TaskState.RUNNING, TaskState.ALLOCATED, TaskState.RUNNING),
        (None, TaskState.ALLOCATED, TaskState.ALLOCATED),
        (None, TaskState.LOST, TaskState.LOST),
    ],
)
def test_a_nodes_last_word_wins(told: TaskState | None, host: TaskState, expected: TaskState) -> None:
    known = (TaskRecord(task="ps:0", state=TaskState.WAITING),)
    words = {} if told is None else {"ps:0": TaskRecord(task="ps:0", state=told, port=1)}
    hosts = {"ps:0": TaskRecord(task="ps:0", state=host, error="exit 137")}
    (merged,) = merge_records(known, words, hosts)
    assert merged.state is expected


MIRRORED = make_mirrored_plan(evaluator=True)
# The program on every task, and a chief that leads.
OWN = replace(PLAN, strategy="none", tasks=tuple(replace(task, runs="program") for task in PLAN.tasks))
SUCCEEDED = Verdict(state=JobState.SUCCEEDED)


def test_mirrored_workers_all_have_to_succeed() -> None:
    one = running(MIRRORED, worker_0=TaskState.SUCCEEDED)
    assert judge(MIRRORED, seen(one)) is None
    both = running(MIRRORED, worker_0=TaskState.SUCCEEDED, worker_1=TaskState.SUCCEEDED)
    assert judge(MIRRORED, seen(both)) == SUCCEEDED


def test_a_chief_that_is_done_leaves_its_workers_a_moment() -> None:
    tasks = running(OWN, chief_0=TaskState.SUCCEEDED)
    assert judge(OWN, seen(tasks, now=10.0, decided=10.0)) is None
    assert judge(OWN, seen(tasks, now=10.0 + FINISH_S, decided=10.0)) == SUCCEEDED
    ended = {f"worker_{index}": TaskState.SUCCEEDED for index in range(3)}
    # What fails after the chief is done is no failure of the job.
    tasks = running(OWN, chief_0=TaskState.SUCCEEDED, worker_3=TaskState.FAILED, **ended)
    assert judge(OWN, seen(tasks, decided=10.0, first_failure=0.0)) == SUCCEEDED


@pytest.mark.parametrize("state", [TaskState.FAILED, TaskState.LOST, TaskState.REQUESTED])
def test_an_evaluator_in_trouble_is_none_of_the_jobs(state: TaskState) -> None:
    plan = replace(PLAN, tasks=(*PLAN.tasks, EVALUATOR))
    tasks = running(plan, evaluator_0=state)
    tasks = tuple(
        replace(record, port=None) if state is TaskState.REQUESTED and "evaluator" in record.task else record
        for record in tasks
    )
    assert not list_failed(tasks)
    assert judge(plan, seen(tasks, now=plan.start_timeout_s + 1.0)) is None
    done = tuple(
        replace(record, state=TaskState.SUCCEEDED) if record.task == "chief:0" else record for record in tasks
    )
    assert judge(plan, seen(done)) == SUCCEEDED


def test_who_lost_a_peer_is_not_the_first_cause() -> None:
    tasks = tuple(
        replace(record, error=error, ended=ended)
        for record, error, ended in zip(
            running(MIRRORED, worker_0=TaskState.FAILED, worker_1=TaskState.FAILED),
            ("exit code 1: UnavailableError: Socket closed", "killed by signal 9", None),
            (100.0, 103.0, None),
            strict=True,
        )
    )
    cause = first_cause(MIRRORED, seen(tasks, spark_failure="worker:0: its node ended with exit status 1"))
    assert cause == "worker:1 failed on host1: killed by signal 9\n(after it failed: worker:0)"
    # While nothing else is known than that someone was lost, the others get time to be told.
    alone = (tasks[0], replace(tasks[1], state=TaskState.RUNNING), tasks[2])
    late = seen(alone, now=10.0, first_failure=10.0 - SETTLE_S)
    assert judge(MIRRORED, late) is None
    assert judge(MIRRORED, replace(late, first_failure=10.0 - SETTLE_LOST_PEER_S)) is not None


LOST_PEER = "exit code 1: UnavailableError: Graph execution error:"


def test_a_mirrored_worker_that_ended_early_is_named_first() -> None:
    tasks = running(MIRRORED, worker_0=TaskState.FAILED, worker_1=TaskState.SUCCEEDED)
    tasks = (replace(tasks[0], error=LOST_PEER), *tasks[1:])
    cause = first_cause(MIRRORED, seen(tasks, spark_failure="worker:0: its node ended with exit status 1"))
    assert cause == (
        "the program of worker:1 ended (exit code 0) while others still trained: "
        f"worker:0 failed on host1: {LOST_PEER}"
    )


def test_what_a_task_said_itself_goes_before_what_spark_hands_on() -> None:
    tasks = running(MIRRORED, worker_0=TaskState.FAILED)
    tasks = (replace(tasks[0], error=LOST_PEER), *tasks[1:])
    handed_on = seen(tasks, spark_failure="worker:0: its node ended with exit status 1")
    assert first_cause(MIRRORED, handed_on) == f"worker:0 failed on host1: {LOST_PEER}"
    lost = seen(tasks, spark_failure="ExecutorLostFailure (executor 2 …)")
    assert first_cause(MIRRORED, lost).startswith("ExecutorLostFailure")
