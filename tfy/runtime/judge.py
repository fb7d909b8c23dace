"""The driver's judgement: pure functions from what was seen to how the job ends.

The driver alone judges. It looks at task records, at the containers that host them and at the
Spark application, and says nothing, or says how the job ends and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tfy.contract import SIDE_TASKS, task_name, type_of_task
from tfy.plan_model import Plan, TaskPlan
from tfy.records import TaskRecord
from tfy.states import JobState, TaskState
from tfy.units import format_duration

# When one task fails others soon follow. The first cause is looked for among all that failed
# within this time of the first that was seen.
SETTLE_S = 3.0
# A program that fails because it lost a server says so at once. Of the server's container the driver
# hears later: Skein asks YARN every 5 s, and the NodeManager tells YARN every second.
SETTLE_LOST_PEER_S = 8.0
_LOST_PEER = (
    "UnavailableError",
    "AbortedError",
    "CancelledError",
    "DeadlineExceededError",
    "Connection reset",
)
# When those that decide are done, the other programs end by themselves soon, or are stopped.
FINISH_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the driver has seen of one job at one moment. Times are of a monotonic clock.

    `executors` is how many executors registered with Spark; `spark_failure` is why the Spark side
    ended, where it did; `first_failure` is when anything was first seen to have failed, `decided` when
    the tasks whose success is the job's were first seen to have succeeded.
    """

    now: float
    began: float
    tasks: tuple[TaskRecord, ...]
    executors: int
    spark_failure: str | None = None
    first_failure: float | None = None
    decided: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How the job ends. `cause` is None only where it succeeded."""

    state: JobState
    cause: str | None = None
    could_not_start: bool = False


def is_registered(record: TaskRecord) -> bool:
    """Whether the task's node has spoken: it tells its address first of all."""
    return record.port is not None


def is_side_task(record: TaskRecord) -> bool:
    """Whether the training neither waits for this task nor fails with it."""
    return type_of_task(record.task) in SIDE_TASKS


def all_registered(tasks: tuple[TaskRecord, ...]) -> bool:
    """Whether the node of every task that the training needs has told its address."""
    return all(is_registered(record) for record in tasks if not is_side_task(record))


def merge_records(
    known: tuple[TaskRecord, ...], told: Mapping[str, TaskRecord], hosts: Mapping[str, TaskRecord]
) -> tuple[TaskRecord, ...]:
    """Each task's newest record: what its node told, and what became of its container.

    A node's own last word wins; a container that ended without one makes the task LOST, once.
    """
    merged = []
    for old in known:
        record = told.get(old.task, old)
        host = hosts.get(old.task)
        if not record.state.final and old.state is TaskState.LOST:
            record = old
        elif host is not None and not record.state.final:
            if host.state is TaskState.LOST:
                record = replace(record, state=TaskState.LOST, error=host.error, ended=host.ended)
            elif not is_registered(record):
                record = replace(record, state=host.state, container_id=host.container_id)
        merged.append(record)
    return tuple(merged)


def blame_executor(
    plan: Plan, tasks: tuple[TaskRecord, ...], spark_failure: str | None, ended: float
) -> tuple[TaskRecord, ...]:
    """Makes the task LOST whose executor Spark's failure names, by task or by container."""
    if spark_failure is None:
        return tasks
    hosted = {task.type for task in plan.tasks if task.hosted == "executor"}
    return tuple(
        replace(record, state=TaskState.LOST, error=spark_failure, ended=ended)
        if not record.state.final
        and type_of_task(record.task) in hosted
        and (
            f"{record.task}:" in spark_failure
            or (record.container_id is not None and record.container_id in spark_failure)
        )
        else record
        for record in tasks
    )


def has_failure(tasks: tuple[TaskRecord, ...], spark_failure: str | None) -> bool:
    """Whether anything has failed, be it the first cause or what followed from it."""
    return spark_failure is not None or bool(list_failed(tasks))


def list_failed(tasks: tuple[TaskRecord, ...]) -> list[TaskRecord]:
    """The tasks that failed or were lost, those that the training does without left out."""
    failed = (TaskState.FAILED, TaskState.LOST)
    return [record for record in tasks if record.state in failed and not is_side_task(record)]


def have_succeeded(plan: Plan, tasks: tuple[TaskRecord, ...]) -> bool:
    """Whether the programs whose success is the job's have all ended well."""
    deciding = deciding_tasks(plan)
    return all(record.state is TaskState.SUCCEEDED for record in tasks if record.task in deciding)


def judge(plan: Plan, seen: Seen) -> Verdict | None:
    """How the job ends, or None while it goes on."""
    if have_succeeded(plan, seen.tasks):
        done = seen.now if seen.decided is None else seen.decided
        going = [record for record in seen.tasks if _ends_by_itself(plan, record) and not record.state.final]
        return None if going and seen.now - done < FINISH_S else Verdict(state=JobState.SUCCEEDED)
    if seen.first_failure is not None and seen.now - seen.first_failure >= settle_s(seen):
        return Verdict(
            state=JobState.FAILED,
            cause=first_cause(plan, seen),
            could_not_start=not all_registered(seen.tasks),
        )
    lasted = seen.now - seen.began
    if not all_registered(seen.tasks) and lasted > plan.start_timeout_s:
        return Verdict(state=JobState.FAILED, cause=describe_missing(plan, seen), could_not_start=True)
    if lasted > plan.total_timeout_s:
        limit = format_duration(plan.total_timeout_s)
        return Verdict(state=JobState.FAILED, cause=f"not ended within timeouts.total ({limit})")
    return None


def settle_s(seen: Seen) -> float:
    """How long to wait for the first cause: longer where all that is known is that someone else was lost."""
    failed = list_failed(seen.tasks)
    follows = seen.spark_failure is None and failed and all(map(_says_lost_peer, failed))
    return SETTLE_LOST_PEER_S if follows else SETTLE_S


def _says_lost_peer(record: TaskRecord) -> bool:
    return any(word in (record.error or "") for word in _LOST_PEER)


def deciding_tasks(plan: Plan) -> frozenset[str]:
    """The tasks whose programs' success is the job's: the chief's, or without one every worker's."""
    lead = plan.task(type_of_task(plan.lead))
    return frozenset(task_name(lead.type, index) for index in range(lead.instances))


def _ends_by_itself(plan: Plan, record: TaskRecord) -> bool:
    """Whether the task's program is expected to end when the chief's has: a worker's own program."""
    return type_of_task(record.task) == "worker" and plan.task("worker").runs == "program"


def first_cause(plan: Plan, seen: Seen) -> str:
    """The failure that the others followed from.

    Who says that it lost someone else goes last. A server does not fail because its program does, and
    neither does Spark: so a server's failure goes first, then what Spark says, then the programs'; among
    equals the earlier.
    """
    failed = list_failed(seen.tasks)
    failed.sort(
        key=lambda record: (_says_lost_peer(record), _runs_program(plan, record), record.ended or 0.0)
    )
    spark = seen.spark_failure
    # Spark only hands on that a node ended, where that task's own word is known.
    told = spark is None or any(spark.startswith(f"{record.task}:") for record in failed)
    if spark is not None and not told and all(_may_follow(plan, record) for record in failed):
        text, rest = spark, failed
    elif failed:
        text, rest = _describe_left(plan, seen, failed[0]), failed[1:]
    else:
        text, rest = "failed for no reason that was seen", []
    if rest:
        text += f"\n(after it failed: {', '.join(record.task for record in rest)})"
    return text


def _describe_left(plan: Plan, seen: Seen, failed: TaskRecord) -> str:
    """The failure; and, where mirrored workers lost one that ended early by itself, that one first."""
    text = f"{failed.task} {_describe_failure(failed)}"
    if plan.strategy != "multi_worker_mirrored" or not _says_lost_peer(failed):
        return text
    ended = [record.task for record in seen.tasks if record.state is TaskState.SUCCEEDED]
    if not ended:
        return text
    return f"the program of {', '.join(ended)} ended (exit code 0) while others still trained: {text}"


def _runs_program(plan: Plan, record: TaskRecord) -> bool:
    return plan.task(type_of_task(record.task)).runs == "program"


def _may_follow(plan: Plan, record: TaskRecord) -> bool:
    """Whether the failure of an executor may be what this task's failure came from."""
    task = plan.task(type_of_task(record.task))
    return _says_lost_peer(record) or (task.runs == "program" and task.hosted == "service")


def _describe_failure(record: TaskRecord) -> str:
    verb = "failed" if record.state is TaskState.FAILED else "was lost"
    where = f" on {record.host}" if record.host else ""
    return f"{verb}{where}: {record.error}" if record.error else f"{verb}{where}"


def describe_missing(plan: Plan, seen: Seen) -> str:
    """Who is missing when timeouts.start is over, those that YARN has no room for first."""
    missing = [record for record in seen.tasks if not is_registered(record) and not is_side_task(record)]
    parts = [text for task in plan.tasks for text in _describe_refused(task, missing)]
    for state, words in _MISSING.items():
        names = [record.task for record in missing if record.state is state]
        if names:
            parts.append(f"{', '.join(names)} {words}")
    limit = format_duration(plan.start_timeout_s)
    return f"not all tasks started within timeouts.start ({limit}): {'; '.join(parts)}"


def _describe_refused(task: TaskPlan, missing: list[TaskRecord]) -> list[str]:
    refused = [
        record.task
        for record in missing
        if record.state is TaskState.REQUESTED and type_of_task(record.task) == task.type
    ]
    if not refused:
        return []
    container = task.container
    return [
        f"{', '.join(refused)} not allocated: YARN granted {task.instances - len(refused)} of "
        f"{task.instances} containers of {container.allocated_mib} MiB and {container.vcores} vcores"
    ]


_MISSING = {
    TaskState.ALLOCATED: "allocated, but not registered",
    TaskState.LOST: "lost",
    TaskState.WAITING: "not asked for yet (waiting for the others)",
}
