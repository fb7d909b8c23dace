"""Following a job: what YARN and the job's directory say, until the job has ended.

The follower asks only YARN and HDFS, never the driver: the client may go and come back at any
time, and the job does not notice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from tfy.contract import JobReport, close_task, from_json, submission_of_tags
from tfy.errors import EXIT_COULD_NOT_START, EXIT_JOB_FAILED, EXIT_OK, SpecError, UnreachableError
from tfy.paths import JobDir
from tfy.states import JobState, job_state_of
from tfy.storage.hdfs import NotFoundError, Storage
from tfy.yarn.client import Application, Yarn

_POLL_S = 1.0
# A ResourceManager that restarts is back within this time.
_UNREACHABLE_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job as YARN and its driver tell it.

    `report` is None before the driver has spoken, and where its word cannot be read: `trouble`.
    """

    application: Application
    submission_id: str
    job_dir: JobDir
    report: JobReport | None
    trouble: str | None = None

    @property
    def state(self) -> JobState:
        """YARN's word where the application has ended, else the driver's."""
        state = job_state_of(self.application.state, self.application.final_status)
        if state.final or self.report is None or self.report.state.final:
            return state
        return self.report.state if state is JobState.STARTING else state

    @property
    def cause(self) -> str | None:
        """Why the job failed or was killed; None where it did not."""
        if self.state not in (JobState.FAILED, JobState.KILLED):
            return None
        if self.report is not None and self.report.cause is not None:
            return self.report.cause
        return self.application.diagnostics.strip() or "YARN gives no reason"

    @property
    def exit_status(self) -> int:
        """The exit status that the job's end means."""
        if self.state is JobState.SUCCEEDED:
            return EXIT_OK
        if self.report is not None and self.report.could_not_start:
            return EXIT_COULD_NOT_START
        return EXIT_JOB_FAILED


class Jobs:
    """The jobs of one cluster."""

    def __init__(self, yarn: Yarn, storage: Storage, user: str) -> None:
        """`user` is whose jobs are found by name."""
        self._yarn = yarn
        self._storage = storage
        self._user = user

    def find(self, target: str) -> Application:
        """The job's application, by YARN's id or by the job's name: then the newest of that name."""
        return self._list(target)[-1]

    def find_running(self, target: str) -> Application:
        """As `find`, but the newest that has not ended, where there is one."""
        found = self._list(target)
        return ([application for application in found if not application.state.final] or found)[-1]

    def _list(self, target: str) -> list[Application]:
        """The jobs that `target` may mean, oldest first; never none."""
        if not target.strip():
            raise SpecError("no job is named", hint="give its name as in job.yaml, or its application id")
        if target.startswith("application_"):
            application = self._yarn.report(target)
            if application is None:
                raise SpecError(f"{target}: YARN does not know this application")
            found = [application]
        else:
            found = list(self._yarn.list_applications(name=target, user=self._user))
        jobs = [application for application in found if _submission_id(application) is not None]
        if not jobs and found:
            raise SpecError(f"{target}: this application is none of tfy's")
        if not jobs:
            raise SpecError(
                f"{target}: YARN knows no job of this name of {self._user}'s",
                hint="give the job's name as in job.yaml, or its application id",
            )
        return jobs

    def view(self, application_id: str) -> JobView:
        """The job at this moment."""
        application = self._yarn.report(application_id)
        if application is None:
            raise UnreachableError(f"{application_id}: YARN does not know this application any more")
        submission_id = _submission_id(application)
        if submission_id is None:
            raise SpecError(f"{application_id}: this application is none of tfy's")
        job_dir = JobDir.of(self._storage.default_fs, application.user, submission_id)
        report, trouble = None, None
        try:
            report = self._read_report(job_dir, ended=application.state.final)
            if report is not None and application.state.final:
                report = _close(report)
        except UnreachableError as error:
            # YARN's word is enough to go on with, and to end with.
            trouble = error.message
        return JobView(
            application=application,
            submission_id=submission_id,
            job_dir=job_dir,
            report=report,
            trouble=trouble,
        )

    def kill(self, view: JobView) -> None:
        """Kills the job: both applications, since Spark's may still wait in the queue."""
        self._yarn.kill(view.application.id)
        spark = view.report.spark_application_id if view.report else None
        if spark is not None:
            self._yarn.kill_spark(spark)

    def _read_report(self, job_dir: JobDir, *, ended: bool) -> JobReport | None:
        for uri in (job_dir.result, job_dir.status) if ended else (job_dir.status,):
            try:
                return from_json(self._storage.read(uri), JobReport)
            except NotFoundError:
                continue
        return None


def follow_job(jobs: Jobs, application_id: str, show: Callable[[JobView], None]) -> JobView:
    """Shows the job's every new view until it has ended; the last view."""
    lost_since: float | None = None
    while True:
        try:
            view = jobs.view(application_id)
        except UnreachableError as error:
            lost_since = time.monotonic() if lost_since is None else lost_since
            if time.monotonic() - lost_since > _UNREACHABLE_LIMIT_S:
                error.hint = f"the job goes on without its follower: tfy status {application_id}"
                raise
        else:
            lost_since = None
            show(view)
            if view.state.final:
                return view
        time.sleep(_POLL_S)


def _close(report: JobReport) -> JobReport:
    """The last that the driver told of a job that has ended: no task of it still runs."""
    ended = report.ended or report.updated
    return replace(report, tasks=tuple(close_task(record, ended) for record in report.tasks))


def _submission_id(application: Application) -> str | None:
    return submission_of_tags(application.tags)
