"""Lines of a whole job: once, in order, wherever they are read, through the job's end."""

from __future__ import annotations

import random

import pytest

from tests.views import make_view
from tests.yarn.logs_world import Container, World
from tfy.errors import SpecError
from tfy.states import ApplicationState
from tfy.yarn.logs_model import LogLine, LogRequest

ALL = LogRequest()
FOLLOW = LogRequest(follow=True)


def worker(index: int, number: int = 2) -> Container:
    return Container(f"container_1_0002_01_{number + index:06d}", f"worker:{index}")


@pytest.mark.parametrize("seed", range(4))
def test_each_line_once_and_in_order_while_everything_changes(seed: int) -> None:
    """Two tasks write all the time; one NodeManager is silent for a while, both forget, the rest is
    aggregated later, and lines are cut at any byte."""
    chance = random.Random(seed)
    first, second = worker(0), worker(1)
    world = World(first, second)
    texts = {
        c.task: "".join(f"{c.task} line {n} {'x' * chance.randrange(90)}\n" for n in range(900))
        for c in (first, second)
    }
    left = dict(texts)

    def write() -> None:
        for container in (first, second):
            cut = chance.randrange(len(texts[container.task]) // 4)
            container.write(left[container.task][:cut], time=float(len(texts)))
            left[container.task] = left[container.task][cut:]

    def silence() -> None:
        write()
        second.unreachable = not second.unreachable

    def end() -> None:
        first.write(left["worker:0"])
        second.write(left["worker:1"])
        first.end()
        if seed % 2:
            second.vanish()

    def forget() -> None:
        first.vanish()
        second.vanish()
        world.end_job("RUNNING")

    def aggregate() -> None:
        first.aggregate()
        second.aggregate()
        world.aggregation = "SUCCEEDED"

    world.steps = [write, silence, write, silence, end, forget, lambda: None, aggregate]
    lines = list(world.lines(FOLLOW))
    for task, text in texts.items():
        assert [line.line for line in lines if line.task == task] == text.splitlines()


def test_lines_are_merged_by_the_time_they_were_written() -> None:
    first, second = worker(0), worker(1)
    world = World(first, second)
    for number in range(4):
        first.write(f"a{number}\n", time=10.0 + number)
        second.write(f"b{number}\nand b\n", time=10.5 + number)
    expected = [
        text
        for number in range(4)
        for text in (f"worker:0 a{number}", f"worker:1 b{number}", "worker:1 and b")
    ]
    assert world.texts(ALL) == expected
    first.aggregate()
    second.aggregate()
    world.end_job()
    assert world.texts(ALL) == expected
    lines = list(world.lines(ALL))
    assert lines[0] == LogLine(10.0, "worker:0", "worker-0.log", "a0")


def test_without_a_clock_the_tasks_follow_each_other() -> None:
    first, second = worker(0), worker(1)
    world = World(first, second)
    for container in (first, second):
        container.write("1\n2\nlast")
        container.aggregate()
    world.end_job()
    assert world.texts(ALL) == [f"worker:{index} {text}" for index in (0, 1) for text in ("1", "2", "last")]


def test_what_a_killed_program_wrote_after_the_last_note_comes_last() -> None:
    first, second = worker(0), worker(1)
    world = World(first, second)
    first.write("early\n", time=10.0)
    first.write("never noted\n")
    second.write("late\n", time=20.0)
    for container in (first, second):
        container.aggregate()
    world.end_job()
    lines = list(world.lines(ALL))
    assert [(line.time, line.line) for line in lines] == [
        (10.0, "early"),
        (10.0, "never noted"),
        (20.0, "late"),
    ]


def test_tasks_are_chosen_by_name_and_by_type() -> None:
    tasks = ("chief:0", "worker:0", "worker:1", "worker:10")
    containers = [Container(f"container_1_0001_01_{n:06d}", task) for n, task in enumerate(tasks, 2)]
    world = World(*containers, tasks=tasks)
    for container in containers:
        container.write("x\n")
    assert world.texts(LogRequest(tasks=("worker:1",))) == ["worker:1 x"]
    assert world.texts(LogRequest(tasks=("worker", "chief:0"))) == [f"{task} x" for task in tasks]
    with pytest.raises(
        SpecError, match="ps: the job has no such task; its tasks: chief:0, worker:0, worker:1"
    ):
        world.texts(LogRequest(tasks=("worker:1", "ps")))


@pytest.mark.parametrize("count", [0, 1, 3, 700, 5000])
def test_the_tail_is_of_each_task(count: int) -> None:
    first, second = worker(0), worker(1)
    world = World(first, second)
    numbers = [str(number) * 60 for number in range(3000)]
    first.write("".join(f"{number}\n" for number in numbers))
    second.write("only\nlast without end")
    request = LogRequest(tail=count)
    for container in (first, second):
        lines = [line.line for line in world.lines(request) if line.task == container.task]
        whole = numbers if container is first else ["only", "last without end"]
        assert lines == whole[max(len(whole) - count, 0) :]


def test_after_the_tail_following_goes_on_without_a_gap() -> None:
    first = worker(0)
    world = World(first, tasks=("worker:0",))
    text = "".join(f"line {number}\n" for number in range(20_000))
    first.write(text[:150_000])

    def more() -> None:
        first.write(text[150_000:])

    def end() -> None:
        first.end()
        world.end_job()

    world.steps = [lambda: None, more, end]
    lines = [line.line for line in world.lines(LogRequest(tail=3, follow=True))]
    whole = text.splitlines()
    known = text[:150_000].count("\n")
    assert lines == whole[known - 3 :]


def test_a_task_that_appears_later_and_one_that_starts_anew_are_picked_up() -> None:
    first, again, late = worker(0), worker(0, number=7), worker(1)
    world = World(first)
    first.write("first\n")

    def restart() -> None:
        del world.containers[first.id]
        world.containers[again.id] = again
        again.write("again\n")

    def appear() -> None:
        world.containers[late.id] = late
        late.write("late\n")

    def end() -> None:
        for container in (again, late):
            container.aggregate()
        world.containers[first.id] = first
        first.aggregate()
        world.end_job()

    world.steps = [lambda: None, restart, appear, end]
    texts = world.texts(LogRequest(follow=True, tail=1))
    assert texts == ["worker:0 first", "worker:0 again", "worker:1 late"]


def test_containers_that_nobody_told_of_are_found_among_the_aggregated_logs() -> None:
    first, before = worker(0), worker(0, number=9)
    driver = Container("container_1_0001_01_000001", "driver", {"application.driver.log": b"d\n"})
    world = World(first, before, driver)
    world.told_of = False
    first.write("1\n", time=1.0)
    before.write("2\n", time=2.0)
    for container in (first, before, driver):
        container.aggregate()
    # Spark's application is known by its report only.
    first.id, before.id = first.id.replace("_0002_", "_0001_"), before.id.replace("_0002_", "_0001_")
    world.containers = {container.id: container for container in (first, before, driver)}
    world.end_job()
    assert world.texts(ALL) == ["worker:0 1", "worker:0 2"]
    assert world.texts(LogRequest(driver=True)) == ["driver d", "worker:0 1", "worker:0 2"]


def test_system_shows_all_files_but_yarns_own_and_folds_nothing() -> None:
    boilerplate = "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
    first = worker(0)
    spark = Container("container_1_0002_01_000001", "spark am", {"stderr": b"am\n", "prelaunch.out": b"p\n"})
    driver = Container(
        "container_1_0001_01_000001",
        "driver",
        {"application.driver.log": b"d\n", "application.master.log": b"m\n", "launch_container.sh": b"l\n"},
    )
    world = World(first, spark, driver, tasks=("worker:0",))
    first.write(boilerplate * 3, time=1.0)
    first.files["stderr"] = b"executor\n"
    assert world.texts(ALL) == ["worker:0 … 3 lines of TensorFlow's start (--system shows them)"]
    found = [(line.task, line.source, line.line) for line in world.lines(LogRequest(system=True))]
    assert sorted(found) == [
        ("driver", "application.driver.log", "d"),
        ("driver", "application.master.log", "m"),
        ("spark am", "stderr", "am"),
        ("worker:0", "stderr", "executor"),
        *[("worker:0", "worker-0.log", boilerplate.rstrip())] * 3,
    ]
    chosen = {line.task for line in world.lines(LogRequest(driver=True))}
    assert chosen == {"worker:0", "driver"}


def test_a_job_in_the_queue_is_waited_for_and_said() -> None:
    first = worker(0)
    world = World(tasks=("worker:0",))
    world.view = make_view(ApplicationState.ACCEPTED)
    world.told_of = False
    assert world.texts(ALL) == []
    assert world.told == [
        "digits waits for YARN to start it in queue default; its logs begin then",
        "no log yet, since no program has started: worker:0",
    ]

    def start() -> None:
        world.view = make_view(ApplicationState.RUNNING)
        world.told_of = True
        world.containers[first.id] = first
        first.write("begun\n")

    def end() -> None:
        first.end()
        world.end_job()

    world.steps = [lambda: None, lambda: None, start, end]
    assert world.texts(FOLLOW) == ["worker:0 begun"]
