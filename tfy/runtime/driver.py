"""The driver: coordinates one job from inside its Skein AM container, and alone judges it.

It starts the Spark application, asks for the service containers once Spark's executors are
granted, hands out the cluster spec when every node has registered, watches, and ends the
Skein application with the first cause in YARN's diagnostics.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from tfy import contract
from tfy.epoch import describe_shares, report_input
from tfy.plan_model import Plan
from tfy.records import JobReport, StopOrder, TaskRecord, close_task
from tfy.runtime import cluster_spec
from tfy.runtime.hosting import Application, Executors
from tfy.runtime.judge import (
    Seen,
    Verdict,
    all_registered,
    blame_executor,
    has_failure,
    have_succeeded,
    is_registered,
    is_side_task,
    judge,
    merge_records,
)
from tfy.runtime.rendezvous import RendezvousLostError
from tfy.shares import InputShares
from tfy.states import JobState, TaskState
from tfy.units import format_duration

_LOG = logging.getLogger(__name__)
_POLL_S = 0.5
_STOP_LIMIT_S = 10.0
# An application master that cannot be asked for so long has gone, and the job with it.
_SILENCE_LIMIT_S = 20.0


class Driver:
    """One job. `offer` takes each new report; it must return at once."""

    def __init__(
        self,
        plan: Plan,
        application_id: str,
        application: Application,
        spark: Executors,
        offer: Callable[[JobReport], None],
        shares: InputShares | None = None,
    ) -> None:
        self._plan = plan
        self._application_id = application_id
        self._application = application
        self._spark = spark
        self._offer = offer
        self._shares = shares
        self._described = describe_shares(shares) if shares else ""
        self._began = time.monotonic()
        self._heard = self._began
        self._first_failure: float | None = None
        self._decided: float | None = None
        self._services_asked = False
        self._cluster_told = False
        self._report = JobReport(
            submission_id=plan.submission_id,
            application_id=application_id,
            name=plan.name,
            state=JobState.STARTING,
            phase="starting Spark" if plan.spark else "starting",
            tasks=tuple(TaskRecord(task=name, state=TaskState.WAITING) for name in plan.task_names()),
            updated=time.time(),
            started=time.time(),
        )

    def run(self) -> JobReport:
        """Runs the job to its end; the final report. The application itself is still up."""
        self._tell()
        self._spark.start()
        while (verdict := self._step()) is None:
            time.sleep(_POLL_S)
        _LOG.info("the job ends: %s", verdict)
        return self._finish(verdict)

    def _step(self) -> Verdict | None:
        seen = self._look()
        try:
            self._advance(seen)
        except RendezvousLostError as error:
            _LOG.warning("to be tried again: %s", error)
        self._tell(tasks=seen.tasks, phase=self._phase(seen), spark=self._spark.application_id)
        return judge(self._plan, seen)

    def _look(self) -> Seen:
        failure = self._spark.failure()
        tasks = blame_executor(self._plan, self._read_tasks(), failure, time.time())
        now = time.monotonic()
        if self._first_failure is None and has_failure(tasks, failure):
            self._first_failure = now
        if self._decided is None and have_succeeded(self._plan, tasks):
            self._decided = now
        return Seen(
            now=now,
            began=self._began,
            tasks=tasks,
            executors=self._spark.executors,
            spark_failure=failure,
            first_failure=self._first_failure,
            decided=self._decided,
        )

    def _read_tasks(self) -> tuple[TaskRecord, ...]:
        try:
            told = {
                record.task: record
                for data in self._application.items(contract.PREFIX_TASK).values()
                for record in (contract.from_json(data, TaskRecord),)
            }
            hosts = self._read_hosts()
        except RendezvousLostError:
            if time.monotonic() - self._heard > _SILENCE_LIMIT_S:
                raise
            return self._report.tasks
        self._heard = time.monotonic()
        return merge_records(self._report.tasks, told, hosts)

    def _read_hosts(self) -> dict[str, TaskRecord]:
        """A record for each task as its container alone would tell it."""
        hosts = {}
        for container in self._application.containers():
            # Asked for one by one, in the order of the index: Skein's instance is our index.
            name = contract.task_name(container.service, container.instance)
            hosts[name] = TaskRecord(
                task=name,
                state=_STATE_OF_CONTAINER.get(container.state, TaskState.LOST),
                container_id=container.container_id,
                error=container.exit_message,
                ended=time.time(),
            )
        for task in self._plan.tasks:
            if task.hosted == "executor":
                for index in range(task.instances):
                    state = TaskState.ALLOCATED if index < self._spark.granted else TaskState.REQUESTED
                    name = contract.task_name(task.type, index)
                    hosts[name] = TaskRecord(task=name, state=state)
        return hosts

    def _advance(self, seen: Seen) -> None:
        """Takes the next step of the start, once all is there for it."""
        executors = sum(task.instances for task in self._plan.tasks if task.hosted == "executor")
        if not self._services_asked and seen.executors >= executors:
            self._ask_for_services()
        if not self._cluster_told and all_registered(seen.tasks):
            spec = cluster_spec.make_cluster_spec(seen.tasks)
            self._application.put(contract.KEY_CLUSTER, json.dumps(spec).encode())
            self._cluster_told = True
            _LOG.info("cluster spec: %s", spec)

    def _ask_for_services(self) -> None:
        """Asks for each service container once, though an answer was lost on the way."""
        asked = {(container.service, container.instance) for container in self._application.containers()}
        for task in self._plan.tasks:
            for index in range(task.instances if task.hosted == "service" else 0):
                if (task.type, index) not in asked:
                    env = {contract.ENV_TASK_TYPE: task.type, contract.ENV_TASK_INDEX: str(index)}
                    self._application.request_container(task.type, env)
        self._services_asked = True

    def _phase(self, seen: Seen) -> str:
        if self._decided is not None:
            return "finishing"
        if self._cluster_told:
            return "training"
        if self._plan.spark is not None and self._spark.application_id is None:
            return "starting Spark"
        if not self._services_asked:
            return "waiting for worker containers"
        return "waiting for tasks to register"

    def _finish(self, verdict: Verdict) -> JobReport:
        succeeded = verdict.cause is None
        reason = "the job has succeeded" if succeeded else "the job has failed"
        if succeeded and any(map(_is_evaluating, self._report.tasks)):
            self._tell(state=JobState.RUNNING, phase="evaluating the last checkpoint")
            order = StopOrder(reason="training is done", evaluating=True)
            self._wait_for_end(order, _STOP_LIMIT_S, but=_is_evaluating)
            self._spark.stop(_STOP_LIMIT_S)
            self._wait_for_end(order, self._plan.evaluate_timeout_s)
        late = {record.task for record in self._report.tasks if succeeded and _is_evaluating(record)}
        self._tell(state=JobState.STOPPING, phase="stopping")
        tasks = self._wait_for_end(StopOrder(reason=reason), _STOP_LIMIT_S)
        self._spark.stop(_STOP_LIMIT_S)
        return replace(
            self._report,
            tasks=tuple(self._close(record, late) for record in tasks),
            state=verdict.state,
            phase=verdict.state.value,
            cause=verdict.cause,
            could_not_start=verdict.could_not_start,
            updated=time.time(),
            ended=time.time(),
        )

    def _close(self, record: TaskRecord, late: set[str]) -> TaskRecord:
        if record.task in late:
            limit = format_duration(self._plan.evaluate_timeout_s)
            record = replace(record, error=f"not done within timeouts.evaluate ({limit})")
        return close_task(record, time.time())

    def _wait_for_end(
        self, order: StopOrder, limit_s: float, but: Callable[[TaskRecord], bool] = lambda record: False
    ) -> tuple[TaskRecord, ...]:
        """Gives the order to every node; waits, at most so long, until all have told their last figures.

        Who registered too late to have them, or `but` those, is not waited for.
        """
        limit = time.monotonic() + limit_s
        told = False
        while time.monotonic() < limit:
            try:
                if not told:
                    self._application.put(contract.KEY_STOP, contract.to_json(order))
                    told = True
                self._tell(state=self._report.state, tasks=self._read_tasks())
            except RendezvousLostError as error:
                _LOG.warning("the nodes cannot be told yet: %s", error)
            going = [record for record in self._report.tasks if _speaks(record) and not but(record)]
            if not going:
                break
            if self._spark.failure() is not None and _only_executors(self._plan, going):
                break  # their nodes went with the Spark stage, no one is left to speak
            time.sleep(_POLL_S)
        return self._report.tasks

    def _tell(
        self,
        *,
        state: JobState | None = None,
        phase: str | None = None,
        tasks: tuple[TaskRecord, ...] | None = None,
        spark: str | None = None,
    ) -> None:
        if state is None:
            state = JobState.RUNNING if self._cluster_told else JobState.STARTING
        self._report = replace(
            self._report,
            state=state,
            phase=phase or self._report.phase,
            tasks=tasks or self._report.tasks,
            spark_application_id=spark or self._report.spark_application_id,
            input=report_input(self._shares, tasks or self._report.tasks, self._described)
            if self._shares
            else None,
            updated=time.time(),
        )
        self._offer(self._report)


_STATE_OF_CONTAINER = {
    "waiting": TaskState.REQUESTED,
    "requested": TaskState.REQUESTED,
    "running": TaskState.ALLOCATED,
}


def _speaks(record: TaskRecord) -> bool:
    return is_registered(record) and not record.state.final


def _is_evaluating(record: TaskRecord) -> bool:
    return is_side_task(record) and _speaks(record)


def _only_executors(plan: Plan, tasks: Iterable[TaskRecord]) -> bool:
    return all(plan.task(contract.type_of_task(record.task)).hosted == "executor" for record in tasks)
