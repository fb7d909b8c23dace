"""The driver from start to verdict: nodes and Spark are played, the rendezvous is in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.plans import EVALUATOR, make_mirrored_plan, make_small_plan
from tfy import contract
from tfy.plan_model import Plan
from tfy.records import JobReport, StopOrder, TaskRecord
from tfy.runtime.driver import Driver
from tfy.runtime.judge import SETTLE_S
from tfy.runtime.rendezvous import MemoryRendezvous, RendezvousLostError, ServiceContainer
from tfy.runtime.spark import NoSpark
from tfy.states import JobState, TaskState


class PlayedSpark:
    """Grants all executors at once; `failing` is what it says when it has failed."""

    application_id = "application_1_2"

    def __init__(self, executors: int) -> None:
        self.granted = executors
        self.executors = executors
        self.failing: str | None = None
        self.stopped = False

    def start(self) -> None:
        pass

    def failure(self) -> str | None:
        return self.failing

    def stop(self, limit_s: float) -> None:
        self.stopped = True


class PlayedApplication(MemoryRendezvous):
    """Starts every container that it is asked for; `script` plays the nodes, a step a look."""

    def __init__(self, plan: Plan, script: dict[int, dict[str, TaskState]]) -> None:
        super().__init__()
        self.plan = plan
        self.script = script
        self.looks = 0
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        self.silent_from: int | None = None
        self.lose_answers = 0
        self.ended: dict[str, str] = {}
        self.evaluator_ends_after = 2

    def items(self, prefix: str) -> Mapping[str, bytes]:
        self.looks += 1
        if self.silent_from is not None and self.looks >= self.silent_from:
            raise RendezvousLostError("gone")
        for task, state in self.script.get(self.looks, {}).items():
            record = TaskRecord(task=task, state=state, host="h", port=1, ended=float(self.looks))
            self.put(contract.task_key(task), contract.to_json(record))
        if self.get(contract.KEY_STOP) is not None:
            self._stop_nodes()
        return super().items(prefix)

    def _stop_nodes(self) -> None:
        order = contract.from_json(self.get(contract.KEY_STOP) or b"", StopOrder)
        for data in super().items(contract.PREFIX_TASK).values():
            record = contract.from_json(data, TaskRecord)
            if record.state.final:
                continue
            ended = replace(record, state=TaskState.STOPPED)
            if order.evaluating and record.task == "evaluator:0":
                # It looks at the last checkpoint first, if it is let.
                self.evaluator_ends_after -= 1
                ended = record if self.evaluator_ends_after else replace(record, state=TaskState.SUCCEEDED)
            self.put(contract.task_key(record.task), contract.to_json(ended))

    def request_container(self, service: str, env: Mapping[str, str]) -> int:
        self.asked.append((service, env))
        if self.lose_answers:
            self.lose_answers -= 1
            raise RendezvousLostError("the answer was lost")
        return sum(asked == service for asked, _ in self.asked) - 1

    def containers(self) -> tuple[ServiceContainer, ...]:
        found = []
        for service, env in self.asked:
            index = int(env[contract.ENV_TASK_INDEX])
            message = self.ended.get(f"{service}:{index}")
            state = "running" if message is None else "failed"
            found.append(
                ServiceContainer(
                    service=service,
                    instance=index,
                    state=state,
                    container_id=f"container_{service}_{index}",
                    exit_message=message,
                )
            )
        return tuple(found)


@pytest.fixture
def plan() -> Plan:
    return make_small_plan(workers=2, ps=2)


def everyone(plan: Plan, state: TaskState) -> dict[str, TaskState]:
    return dict.fromkeys(plan.task_names(), state)


def drive(
    plan: Plan, application: PlayedApplication, spark: PlayedSpark | NoSpark
) -> tuple[JobReport, list[JobReport]]:
    told: list[JobReport] = []
    report = Driver(plan, "application_1_1", application, spark, told.append).run()
    return report, told


def test_a_job_that_succeeds(plan: Plan) -> None:
    script = {
        1: everyone(plan, TaskState.REGISTERED),
        2: everyone(plan, TaskState.RUNNING),
        3: {"chief:0": TaskState.SUCCEEDED},
    }
    application, spark = PlayedApplication(plan, script), PlayedSpark(2)
    report, told = drive(plan, application, spark)
    assert (report.state, report.cause) == (JobState.SUCCEEDED, None)
    assert [(service, env["TFY_TASK_TYPE"], env["TFY_TASK_INDEX"]) for service, env in application.asked] == [
        ("chief", "chief", "0"),
        ("ps", "ps", "0"),
        ("ps", "ps", "1"),
    ]
    cluster = application.get(contract.KEY_CLUSTER)
    assert cluster is not None
    assert {kind: len(addresses) for kind, addresses in json.loads(cluster).items()} == {
        "chief": 1,
        "worker": 2,
        "ps": 2,
    }
    assert {record.task: record.state for record in report.tasks} == {
        "chief:0": TaskState.SUCCEEDED,
        **dict.fromkeys(("worker:0", "worker:1", "ps:0", "ps:1"), TaskState.STOPPED),
    }
    assert spark.stopped
    assert [report.state for report in told][-1] is JobState.STOPPING
    assert report.spark_application_id == "application_1_2"


def test_services_wait_for_sparks_executors(plan: Plan) -> None:
    application, spark = PlayedApplication(plan, {}), PlayedSpark(1)
    spark.granted = 1
    report, _ = drive(replace(plan, start_timeout_s=1), application, spark)
    assert application.asked == []
    assert report.could_not_start
    assert report.cause is not None
    assert "worker:1 not allocated: YARN granted 1 of 2" in report.cause
    assert application.get(contract.KEY_STOP) is not None


def test_no_container_is_asked_for_twice_though_an_answer_is_lost(plan: Plan) -> None:
    script = {3: everyone(plan, TaskState.REGISTERED), 4: {"chief:0": TaskState.SUCCEEDED}}
    application = PlayedApplication(plan, script)
    application.lose_answers = 1
    report, _ = drive(plan, application, PlayedSpark(2))
    assert report.state is JobState.SUCCEEDED
    assert sorted(service for service, _ in application.asked) == ["chief", "ps", "ps"]


def test_a_container_that_ends_without_a_word(plan: Plan) -> None:
    script = {1: everyone(plan, TaskState.REGISTERED), 2: everyone(plan, TaskState.RUNNING)}
    application, spark = PlayedApplication(plan, script), PlayedSpark(2)
    application.ended["ps:1"] = "Container killed on request. Exit code is 137"
    report, _ = drive(plan, application, spark)
    assert report.state is JobState.FAILED
    assert not report.could_not_start
    assert report.cause == "ps:1 was lost on h: Container killed on request. Exit code is 137"


def test_the_first_cause_is_told_not_what_followed(plan: Plan) -> None:
    script = {
        1: everyone(plan, TaskState.REGISTERED),
        2: everyone(plan, TaskState.RUNNING),
        3: {"chief:0": TaskState.FAILED},
        4: {"worker:1": TaskState.FAILED},
    }
    report, _ = drive(plan, PlayedApplication(plan, script), PlayedSpark(2))
    assert report.cause is not None
    assert report.cause.startswith("worker:1 failed on h")
    assert report.ended is not None
    assert report.ended - report.started >= SETTLE_S


def test_an_application_master_that_falls_silent_ends_the_driver(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfy.runtime.driver._SILENCE_LIMIT_S", 1.0)
    application = PlayedApplication(plan, {1: everyone(plan, TaskState.REGISTERED)})
    application.silent_from = 2
    with pytest.raises(RendezvousLostError):
        drive(plan, application, PlayedSpark(2))


def finishing(plan: Plan) -> dict[int, dict[str, TaskState]]:
    """All tasks run, then those that lead are done."""
    done = {name: TaskState.SUCCEEDED for name in plan.task_names() if name.startswith("worker")}
    return {1: everyone(plan, TaskState.REGISTERED), 2: everyone(plan, TaskState.RUNNING), 3: done}


def test_the_evaluator_has_its_last_look_when_the_others_are_done() -> None:
    plan = make_mirrored_plan(evaluator=True)
    application, spark = PlayedApplication(plan, finishing(plan)), PlayedSpark(2)
    report, told = drive(plan, application, spark)
    assert report.state is JobState.SUCCEEDED
    assert {record.task: record.state for record in report.tasks}["evaluator:0"] is TaskState.SUCCEEDED
    cluster = application.get(contract.KEY_CLUSTER)
    assert cluster is not None
    assert list(json.loads(cluster)) == ["worker"]
    phases = list(dict.fromkeys(report.phase for report in told))
    assert phases[-3:] == ["finishing", "evaluating the last checkpoint", "stopping"]
    assert all(report.state is JobState.RUNNING for report in told if report.phase == phases[-2])


def test_an_evaluator_that_never_ends_is_stopped() -> None:
    plan = replace(make_mirrored_plan(evaluator=True), evaluate_timeout_s=1)
    application = PlayedApplication(plan, finishing(plan))
    application.evaluator_ends_after = 1000
    report, _ = drive(plan, application, PlayedSpark(2))
    assert report.state is JobState.SUCCEEDED
    evaluator = report.tasks[-1]
    assert (evaluator.task, evaluator.state) == ("evaluator:0", TaskState.STOPPED)
    assert evaluator.error == "not done within timeouts.evaluate (1 s)"


def test_an_evaluator_that_never_came_holds_nobody_up() -> None:
    plan = make_mirrored_plan(evaluator=True)
    script = finishing(plan)
    for states in script.values():
        states.pop("evaluator:0", None)
    report, told = drive(plan, PlayedApplication(plan, script), PlayedSpark(2))
    assert report.state is JobState.SUCCEEDED
    assert "evaluating the last checkpoint" not in [report.phase for report in told]


def test_a_job_without_workers_needs_no_spark() -> None:
    plan = replace(make_small_plan(), strategy="none", spark=None)
    chief = replace(plan.task("chief"), runs="program")
    plan = replace(plan, tasks=(chief, EVALUATOR))
    script = {
        1: everyone(plan, TaskState.REGISTERED),
        2: everyone(plan, TaskState.RUNNING),
        3: {"chief:0": TaskState.SUCCEEDED},
    }
    report, told = drive(plan, PlayedApplication(plan, script), NoSpark())
    assert report.state is JobState.SUCCEEDED
    assert "starting Spark" not in [report.phase for report in told]
