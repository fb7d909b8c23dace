"""How logs look, and where a failed job points to them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest

from tests.views import make_report, make_view
from tfy.cli.log_screen import LogScreen
from tfy.cli.story import describe_log
from tfy.errors import SpecError
from tfy.records import TaskRecord
from tfy.states import ApplicationState, JobState, TaskState
from tfy.yarn.logs_model import LogLine, LogRequest

TASKS = ("chief:0", "worker:0", "worker:1")
LINES = (
    LogLine(1.5, "worker:1", "worker-1.log", "[bold] as it is"),
    LogLine(None, "worker:1", "stderr", "INFO x"),
    LogLine(2.0, "driver", "application.driver.log", ""),
    LogLine(2.0, "spark am", "stderr", "y"),
)


def show(request: LogRequest, capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> str:
    screen = LogScreen(request, as_json=as_json)
    screen.begin(TASKS)
    for line in LINES:
        screen.show(line)
    return capsys.readouterr().out


@pytest.mark.parametrize("request_", [LogRequest(), LogRequest(tasks=("worker",)), LogRequest(system=True)])
def test_lines_of_several_have_their_origin(request_: LogRequest, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(request_, capsys) == (
        "worker:1 | [bold] as it is\nworker:1 stderr | INFO x\ndriver | \nspark am stderr | y\n"
    )


def test_lines_of_one_task_are_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    for tasks in (("worker:1",), ("chief",)):
        assert show(LogRequest(tasks=tasks), capsys) == "[bold] as it is\nINFO x\n\ny\n"
    assert show(LogRequest(tasks=("worker:1",), driver=True), capsys).startswith("worker:1 | [bold]")


def test_as_json_each_line_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    first, second, *_ = show(LogRequest(), capsys, as_json=True).splitlines()
    assert json.loads(first) == {
        "time": 1.5,
        "task": "worker:1",
        "source": "worker-1.log",
        "line": "[bold] as it is",
    }
    assert json.loads(second)["time"] is None


def test_a_progress_bar_is_drawn_on_a_terminal_only() -> None:
    code = (
        "from tfy.cli.log_screen import LogScreen; from tfy.yarn.logs_model import LogLine, LogRequest\n"
        "screen = LogScreen(LogRequest(follow=True), as_json=False); screen.draw('1/2 [=>]')\n"
        "screen.draw('2/2 [==]'); screen.show(LogLine(1.0, 'worker:1', 'worker-1.log', 'done'))"
    )
    command = [sys.executable, "-c", code]
    plain = subprocess.run(command, capture_output=True, timeout=60, check=True)
    assert plain.stdout == b"worker:1 | done\n"
    terminal, inside = pty.openpty()
    try:
        environ = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
        subprocess.run(command, stdout=inside, env=environ, timeout=60, check=True)
        shown = os.read(terminal, 10_000)
    finally:
        os.close(inside)
        os.close(terminal)
    assert shown == b"\r\x1b[K1/2 [=>]\r\x1b[K2/2 [==]\r\x1b[Kworker:1 | done\r\n"


def test_a_task_that_is_not_there_is_refused_with_those_that_are() -> None:
    screen = LogScreen(LogRequest(tasks=("worker:2",)), as_json=False)
    with pytest.raises(SpecError, match="its tasks: chief:0, worker:0, worker:1"):
        screen.begin(TASKS)


def record(task: str, state: TaskState, ended: float, container: str | None = "container_1") -> TaskRecord:
    return TaskRecord(task=task, state=state, ended=ended, container_id=container)


@pytest.mark.parametrize(
    ("records", "command"),
    [
        (
            (
                record("worker:0", TaskState.FAILED, 5.0),
                record("worker:1", TaskState.FAILED, 4.0),
                record("ps:0", TaskState.LOST, 1.0),
            ),
            "tfy logs application_1_1 worker:1",
        ),
        ((record("ps:0", TaskState.LOST, 1.0),), "tfy logs application_1_1 ps:0"),
        ((record("ps:0", TaskState.LOST, 1.0, None),), "tfy logs application_1_1 --driver"),
        ((), "tfy logs application_1_1 --driver"),
    ],
)
def test_a_failed_job_points_to_the_log_of_its_cause(records: tuple[TaskRecord, ...], command: str) -> None:
    report = make_report(JobState.FAILED, *records, cause="x")
    assert describe_log(make_view(ApplicationState.FINISHED, "failed", report=report)) == command
    for state, status in ((ApplicationState.FINISHED, "succeeded"), (ApplicationState.KILLED, "killed")):
        assert describe_log(make_view(state, status, report=report)) is None
