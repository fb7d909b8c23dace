"""What a job's state is, by YARN's word and the driver's, and what exit status it means."""

from __future__ import annotations

from typing import Any

import pytest

from tests.views import make_report, make_view
from tfy.errors import SpecError
from tfy.records import JobReport
from tfy.states import ApplicationState, JobState
from tfy.yarn.follow import Jobs, JobView

RUNNING = make_report(JobState.RUNNING)
SUCCEEDED = make_report(JobState.SUCCEEDED)
FAILED = make_report(JobState.FAILED, cause="chief:0 failed")
NOT_STARTED = make_report(JobState.FAILED, cause="worker:3 missing", could_not_start=True)


@pytest.mark.parametrize(
    ("application", "final_status", "report", "state", "exit_status"),
    [
        (ApplicationState.ACCEPTED, "undefined", None, JobState.SUBMITTED, 1),
        (ApplicationState.RUNNING, "undefined", None, JobState.STARTING, 1),
        (ApplicationState.RUNNING, "undefined", RUNNING, JobState.RUNNING, 1),
        (ApplicationState.FINISHED, "succeeded", SUCCEEDED, JobState.SUCCEEDED, 0),
        (ApplicationState.FINISHED, "failed", FAILED, JobState.FAILED, 1),
        (ApplicationState.FINISHED, "failed", NOT_STARTED, JobState.FAILED, 4),
        (ApplicationState.KILLED, "killed", RUNNING, JobState.KILLED, 1),
        (ApplicationState.FAILED, "failed", RUNNING, JobState.FAILED, 1),
        # The driver wrote its result and YARN was killed before it heard: YARN's word counts.
        (ApplicationState.KILLED, "killed", SUCCEEDED, JobState.KILLED, 1),
        (ApplicationState.UNKNOWN, "undefined", None, JobState.SUBMITTED, 1),
    ],
)
def test_the_state_of_a_job(
    application: ApplicationState,
    final_status: str,
    report: JobReport | None,
    state: JobState,
    exit_status: int,
) -> None:
    view = make_view(application, final_status, report=report)
    assert (view.state, view.exit_status) == (state, exit_status)


def test_the_cause_is_the_drivers_or_else_yarns() -> None:
    assert make_view(ApplicationState.FINISHED, "failed", "short", FAILED).cause == "chief:0 failed"
    assert make_view(ApplicationState.FAILED, "failed", "exit 137\n", RUNNING).cause == "exit 137"
    assert make_view(ApplicationState.KILLED, "killed", "").cause == "YARN gives no reason"
    assert make_view(ApplicationState.FINISHED, "succeeded", "x", SUCCEEDED).cause is None
    view: JobView = make_view(ApplicationState.RUNNING, report=FAILED)
    assert view.cause is None


class NoYarn:
    """Must not be asked."""


def test_no_name_is_no_job() -> None:
    yarn: Any = NoYarn()
    with pytest.raises(SpecError, match="no job is named"):
        Jobs(yarn, yarn, "me").find(" ")
