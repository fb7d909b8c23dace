"""Views of jobs for tests."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from tfy.paths import JobDir
from tfy.records import JobReport, TaskRecord
from tfy.states import ApplicationState, JobState
from tfy.yarn.application import Application
from tfy.yarn.follow import JobView

BEGAN = datetime(2026, 12, 1, 12, 0, tzinfo=timezone.utc)


def make_view(
    application_state: ApplicationState = ApplicationState.RUNNING,
    final_status: str = "undefined",
    diagnostics: str = "",
    report: JobReport | None = None,
) -> JobView:
    """A job as YARN and, where `report` is given, its driver tell it."""
    application = Application(
        id="application_1_1",
        name="digits",
        user="me",
        queue="default",
        tags=("tfy", "tfy:u"),
        state=application_state,
        final_status=final_status,
        diagnostics=diagnostics,
        tracking_url="",
        started=BEGAN,
        finished=BEGAN + timedelta(seconds=90) if application_state.final else None,
    )
    return JobView(
        application=application, submission_id="u", job_dir=JobDir("hdfs://nn/user/me/.tfy/u"), report=report
    )


def make_report(
    state: JobState,
    *tasks: TaskRecord,
    phase: str = "training",
    cause: str | None = None,
    could_not_start: bool = False,
) -> JobReport:
    """The driver's word."""
    return JobReport(
        submission_id="u",
        application_id="application_1_1",
        name="digits",
        state=state,
        phase=phase,
        tasks=tasks,
        updated=1.0,
        started=0.0,
        cause=cause,
        could_not_start=could_not_start,
    )
