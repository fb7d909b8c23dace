"""Waiting for a job: quiet, one line at the end, and an exit status that a script can read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.views import make_report, make_view
from tfy.cli.watch import wait_for_job
from tfy.errors import EXIT_COULD_NOT_START, EXIT_INTERRUPTED, EXIT_WAIT_LIMIT, WaitLimitError
from tfy.states import ApplicationState, JobState
from tfy.yarn.follow import JobView, follow_job

RUNNING = make_view(report=make_report(JobState.RUNNING))
SUCCEEDED = make_view(ApplicationState.FINISHED, "succeeded")
KILLED = make_view(ApplicationState.KILLED, "killed", "killed by ada\n on host")
NOT_STARTED = make_view(
    ApplicationState.FINISHED,
    "failed",
    report=make_report(JobState.FAILED, cause="no room", could_not_start=True),
)


class PlayedJobs:
    """A cluster that tells one job's views in turn, the last one for ever."""

    def __init__(self, *views: JobView | BaseException) -> None:
        self._views = list(views)

    def view(self, _application_id: str) -> JobView:
        view = self._views.pop(0) if len(self._views) > 1 else self._views[0]
        if isinstance(view, BaseException):
            raise view
        return view


def wait(*views: JobView | BaseException, limit_s: float | None = None, as_json: bool = False) -> int:
    jobs: Any = PlayedJobs(*views)
    return wait_for_job(jobs, "application_1_1", limit_s, as_json=as_json)


@pytest.mark.parametrize(
    ("view", "status", "line"),
    [
        (SUCCEEDED, 0, "digits succeeded in 1 min 30 s (application_1_1)\n"),
        (KILLED, 1, "digits killed in 1 min 30 s: killed by ada (application_1_1)\n"),
        (NOT_STARTED, EXIT_COULD_NOT_START, "digits failed in 1 min 30 s: no room (application_1_1)\n"),
    ],
)
def test_the_end_is_one_line(
    view: JobView, status: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert wait(view) == status
    assert capsys.readouterr() == (line, "")
    assert wait(view, as_json=True) == status
    out, err = capsys.readouterr()
    assert (json.loads(out)["exit_status"], err) == (status, "")


def test_ctrl_c_leaves_the_job(capsys: pytest.CaptureFixture[str]) -> None:
    assert wait(KeyboardInterrupt()) == EXIT_INTERRUPTED
    out, err = capsys.readouterr()
    assert out == ""
    assert "no longer waiting; the job goes on" in err


def test_the_limit_is_kept_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WaitLimitError, match=r"application_1_1 has not ended within 0\.1 s") as reached:
        wait(RUNNING, limit_s=0.1)
    assert reached.value.exit_status == EXIT_WAIT_LIMIT
    assert capsys.readouterr() == ("", "")
    # A job that has ended already is not late, however short the limit.
    assert wait(SUCCEEDED, limit_s=0.0) == 0


def test_a_follower_sees_every_view() -> None:
    jobs: Any = PlayedJobs(SUCCEEDED)
    seen: list[JobView] = []
    assert follow_job(jobs, "application_1_1", seen.append) is seen[-1]
