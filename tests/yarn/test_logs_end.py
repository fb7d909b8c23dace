"""What is told of logs that are not there, and for how long they are waited for."""

from __future__ import annotations

import threading

import pytest

from tests.yarn.logs_world import Container, World
from tests.yarn.test_logs import ALL, FOLLOW, worker
from tfy.errors import UnreachableError
from tfy.yarn.logs_model import LogRequest


def test_where_yarn_keeps_no_logs_it_says_so_after_what_there_was() -> None:
    first = worker(0)
    world = World(first, tasks=("worker:0",))
    first.write("seen\n")

    def vanish() -> None:
        first.write("never seen\n")
        first.vanish()
        world.end_job("DISABLED")

    world.steps = [lambda: None, vanish]
    seen = []
    with pytest.raises(
        UnreachableError, match=r"the logs of worker:0 \(container_1_0002_01_000002\)"
    ) as caught:
        for line in world.lines(FOLLOW):
            seen.append(line.line)
    assert seen == ["seen"]
    assert "yarn.log-aggregation-enable" in (caught.value.hint or "")
    with pytest.raises(UnreachableError, match="does not keep them"):
        world.texts(ALL)


@pytest.mark.parametrize("aggregation", ["SUCCEEDED", "FAILED", "TIME_OUT", "NOT_START"])
def test_logs_that_never_come_are_named_and_not_waited_for_without_end(aggregation: str) -> None:
    first, second = worker(0), worker(1)
    world = World(first, second)
    for container in (first, second):
        container.write("x\n", time=1.0)
    first.aggregate()
    second.vanish()
    world.end_job(aggregation)
    lines = world.lines(ALL, limit_s=1.0)
    assert next(lines).task == "worker:0"
    with pytest.raises(UnreachableError, match="the logs of worker:1") as caught:
        next(lines)
    assert "worker:0" not in caught.value.message


def test_a_job_of_which_no_program_started_says_so() -> None:
    first = worker(0)
    world = World(first, tasks=("worker:0", "worker:1"))
    first.files["stderr"] = b"java.lang.Error\n"
    first.aggregate()
    world.end_job()
    assert world.texts(ALL) == []
    assert world.told == ["no log, since no program has started: worker:0, worker:1"]


def test_a_job_whose_driver_never_spoke_has_no_logs_to_wait_for() -> None:
    world = World(tasks=("worker:0",))
    world.told_of = False
    world.end_job("NOT_START")
    assert world.texts(ALL) == []
    assert world.told == ["no log, since no program has started: worker:0"]
    assert world.looks == 1


def test_where_the_drivers_word_cannot_be_read_what_yarn_collects_is_waited_for() -> None:
    first = Container("container_1_0001_01_000002", "worker:0")
    world = World(first, tasks=("worker:0",))
    first.write("x\n")
    first.vanish()
    world.told_of, world.trouble = False, "HDFS does not answer within 10 s"
    world.end_job("RUNNING")

    def collect() -> None:
        first.aggregate()
        world.aggregation = "SUCCEEDED"

    world.steps = [lambda: None, lambda: None, collect]
    assert world.texts(ALL) == ["worker:0 x"]


@pytest.mark.parametrize("ended_before", [True, False])
@pytest.mark.parametrize("away", [True, False])
def test_why_the_aggregated_logs_cannot_be_read_is_told_whatever_the_node_says(
    away: bool, ended_before: bool
) -> None:
    first = worker(0)
    world = World(first, tasks=("worker:0",))
    first.write("x\n")
    first.vanish()
    first.unreachable = away
    world.refusal = "the aggregated logs cannot be read: AccessControlException: Permission denied"
    world.steps = [world.end_job] if ended_before else [lambda: None, world.end_job]
    with pytest.raises(UnreachableError, match=r"cannot be read: .*Permission denied"):
        world.texts(FOLLOW)


@pytest.mark.parametrize("request_", [ALL, FOLLOW])
def test_of_two_absences_the_one_that_is_waited_for_is_told(request_: LogRequest) -> None:
    first = worker(0)
    world = World(first, tasks=("worker:0",))

    def end() -> None:
        first.vanish()
        world.end_job()

    world.steps = [lambda: None, end] if request_.follow else [end]
    with pytest.raises(UnreachableError, match="cannot be read: no aggregated logs"):
        list(world.lines(request_))


def test_a_silent_host_does_not_keep_the_others_lines_back() -> None:
    first, second = worker(0), worker(1)
    second.silence = threading.Event()
    world = World(first, second)
    first.write("seen\n")
    second.write("seen later\n")

    def end() -> None:
        first.end()
        second.end()
        world.end_job()

    lines = world.lines(FOLLOW)
    assert next(lines).line == "seen"
    second.silence.set()
    world.steps = [lambda: None, end]
    assert [line.line for line in lines] == ["seen later"]
    # Nobody gave it up: it was heard when it answered.
    assert world.told == []


def test_logs_of_one_task_are_copied_one_after_another() -> None:
    """What is not merged needs room for one log only."""
    first, again = worker(0), worker(0, number=7)
    world = World(first, again, tasks=("worker:0", "worker:1"))
    for container in (first, again):
        container.write("".join(f"{container.id} {number}\n" for number in range(200)), time=1.0)
        container.aggregate()
    world.end_job()
    assert len(world.texts(LogRequest(tasks=("worker:0",)))) == 400
    half = len(world.copied) // 2
    assert half > 1
    assert world.copied == [first.id] * half + [again.id] * half
