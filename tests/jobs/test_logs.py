"""Logs of real jobs: live, through the job's end, right after it and later, and of one that was killed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import LocalHadoop
from tests.jobs.running import JOB_LIMIT_S, START_LIMIT_S, TFY, Ended, run_tfy, write_job
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

LINES = 10_000
EARLY = 4_000
SETTINGS = """
strategy: none
args: [{go}]
tasks:
  worker: {{instances: 2, memory: 1536 MiB}}
"""

# Numbered lines: some at once, some once the test has seen those, the rest in bursts up to the last moment.
NUMBERS = """
import os, pathlib, sys, time

index = os.environ["TFY_TASK_INDEX"]
if index == "0":
    import tensorflow

def write(first, last):
    for number in range(first, last):
        print(f"worker {index} line {number:05d}", flush=number % 50 == 0)
    sys.stdout.flush()

write(0, 4000)
limit = time.monotonic() + 240
while not pathlib.Path(sys.argv[1]).exists() and time.monotonic() < limit:
    time.sleep(0.05)
for part in range(4000, 10000, 300):
    write(part, part + 300)
    time.sleep(0.05)
"""

# Until it is killed; what it had written by then is all there is.
ENDLESS = """
import itertools, os, time

for number in itertools.count():
    print(f"worker {os.environ['TFY_TASK_INDEX']} line {number:05d}", flush=True)
    time.sleep(0.001)
"""


@dataclass(frozen=True, slots=True)
class Follower:
    """`tfy logs -f` in the background."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    def numbers(self) -> dict[str, list[int]]:
        """What it has shown so far."""
        return read_numbers(self.out.read_text())

    def wait_for(self, count: int) -> None:
        """Waits until it has shown so many lines of both tasks."""
        wait_until(
            lambda: (
                self.process.poll() is not None
                or all(len(numbers) >= count for numbers in self.numbers().values())
            ),
            limit_s=START_LIMIT_S + JOB_LIMIT_S,
            what=f"{count} lines of both tasks",
        )
        assert self.process.poll() is None, self.err.read_text()


def start_follower(cluster: LocalHadoop, folder: Path, *args: str) -> Follower:
    out, err = folder / "logs.out", folder / "logs.err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen([*TFY, "logs", *args], env=cluster.environ, stdout=stdout, stderr=stderr)
    return Follower(process, out, err)


def read_numbers(text: str) -> dict[str, list[int]]:
    """The numbered lines by task, as they came; a line under another task's name is a fault."""
    found: dict[str, list[int]] = {"worker:0": [], "worker:1": []}
    pattern = re.compile(r"^(worker:\d) \| worker (\d) line (\d+)$", flags=re.MULTILINE)
    for task, index, number in pattern.findall(text):
        assert task.endswith(index)
        found[task].append(int(number))
    return found


def submit(cluster: LocalHadoop, folder: Path, program: str) -> str:
    job = write_job(folder, program, SETTINGS.format(go=folder / "go"))
    ended = run_tfy(cluster, "submit", str(job), "--detach")
    assert ended.code == 0, ended.stderr
    return ended.stdout.strip()


@dataclass(frozen=True, slots=True)
class Numbered:
    """A job that has ended, and what was seen of its logs on the way."""

    id: str
    live: Ended
    followed: Follower
    at_once: Ended


@pytest.fixture(scope="module")
def numbered(cluster: LocalHadoop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Numbered]:
    folder = tmp_path_factory.mktemp("jobs") / "numbered"
    application_id = submit(cluster, folder, NUMBERS)
    follower = start_follower(cluster, folder, "numbered", "--follow")
    try:
        follower.wait_for(EARLY)
        live = run_tfy(cluster, "logs", application_id, "worker:1")
        (folder / "go").touch()
        assert follower.process.wait(JOB_LIMIT_S) == 0, follower.err.read_text()
        # The NodeManagers forget just now, and the aggregated logs may not be there yet.
        yield Numbered(application_id, live, follower, run_tfy(cluster, "logs", application_id))
    finally:
        follower.process.kill()
        run_tfy(cluster, "kill", application_id)


def test_followed_from_the_queue_to_the_end_each_line_comes_once_in_order(numbered: Numbered) -> None:
    for task, numbers in numbered.followed.numbers().items():
        assert numbers == list(range(LINES)), task


def test_one_task_is_shown_live_as_it_is(numbered: Numbered) -> None:
    assert numbered.live.code == 0, numbered.live.stderr
    assert numbered.live.stdout == "".join(f"worker 1 line {number:05d}\n" for number in range(EARLY))


def test_right_after_the_end_nothing_is_missing(numbered: Numbered) -> None:
    assert numbered.at_once.code == 0, numbered.at_once.stderr
    for task, numbers in read_numbers(numbered.at_once.stdout).items():
        assert numbers == list(range(LINES)), task


def test_tensorflows_start_is_folded(numbered: Numbered) -> None:
    for text in (numbered.followed.out.read_text(), numbered.at_once.stdout):
        others = [line for line in text.splitlines() if not re.search(r" line \d{5}$", line)]
        assert len(others) == 1
        assert re.fullmatch(
            r"worker:0 \| … \d+ lines of TensorFlow's start \(--system shows them\)", others[0]
        )


def test_the_tasks_lines_are_merged_by_time(cluster: LocalHadoop, numbered: Numbered) -> None:
    ended = run_tfy(cluster, "logs", numbered.id, "--json")
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert {tuple(line) for line in lines} == {("time", "task", "source", "line")}
    assert {line["source"] for line in lines} == {"worker-0.log", "worker-1.log"}
    times = [line["time"] for line in lines]
    assert times == sorted(times)
    # The last bursts of both took a second: they alternate.
    tasks = [line["task"] for line in lines[-2 * (LINES - EARLY) :]]
    assert sum(one != other for one, other in pairwise(tasks)) >= 2


def test_afterwards_tasks_and_tails_are_chosen(cluster: LocalHadoop, numbered: Numbered) -> None:
    ended = run_tfy(cluster, "logs", numbered.id, "worker:1", "--tail", "5")
    assert ended.stdout == "".join(f"worker 1 line {number:05d}\n" for number in range(LINES - 5, LINES))
    assert ended.stderr == ""
    ended = run_tfy(cluster, "logs", "numbered", "worker", "--tail", "5", "--follow")
    last = list(range(LINES - 5, LINES))
    assert read_numbers(ended.stdout) == {"worker:0": last, "worker:1": last}
    ended = run_tfy(cluster, "logs", numbered.id, "worker:2")
    assert (ended.code, ended.stdout) == (2, "")
    assert "worker:2: the job has no such task; its tasks: worker:0, worker:1" in ended.stderr


def test_the_driver_and_the_system_have_logs_too(cluster: LocalHadoop, numbered: Numbered) -> None:
    ended = run_tfy(cluster, "logs", numbered.id, "worker:1", "--driver", "--tail", "20")
    assert "driver | " in ended.stdout
    assert "tfy.runtime.driver: cluster spec: " in ended.stdout
    assert "worker:1 | worker 1 line 09999\n" in ended.stdout
    ended = run_tfy(cluster, "logs", numbered.id, "--system")
    assert read_numbers(ended.stdout)["worker:1"] == list(range(LINES))
    assert " lines of " not in ended.stdout
    assert "worker:0 | WARNING: All log messages before absl::InitializeLog()" in ended.stdout
    for origin in ("spark am stderr", "worker:0 stderr", "worker:1 stderr", "driver"):
        assert f"\n{origin} | " in ended.stdout, origin
    for yarns in ("launch_container", "directory.info", "prelaunch"):
        assert f"{yarns}.sh | " not in ended.stdout and f" {yarns} | " not in ended.stdout


def test_a_killed_job_shows_all_that_was_written(cluster: LocalHadoop, tmp_path: Path) -> None:
    application_id = submit(cluster, tmp_path / "endless", ENDLESS)
    follower = start_follower(cluster, tmp_path, application_id, "-f")
    try:
        follower.wait_for(2000)
        other = start_follower(cluster, tmp_path / "endless", application_id, "-f")
        other.wait_for(2000)
        other.process.send_signal(signal.SIGINT)
        assert other.process.wait(15) == 130
        assert other.err.read_text().strip() == ""
        assert run_tfy(cluster, "kill", application_id).code == 0
        assert follower.process.wait(JOB_LIMIT_S) == 0, follower.err.read_text()
    finally:
        follower.process.kill()
        run_tfy(cluster, "kill", application_id)
    ended = run_tfy(cluster, "logs", application_id)
    assert ended.code == 0, ended.stderr
    afterwards = read_numbers(ended.stdout)
    assert follower.numbers() == afterwards
    for task, numbers in afterwards.items():
        assert len(numbers) >= 2000 and numbers == list(range(len(numbers))), task
