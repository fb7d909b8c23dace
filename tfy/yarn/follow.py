"""Following a job: what YARN and the job's directory say, until the job has ended.

The follower asks only YARN and HDFS, never the driver: the client may go and come back at any
time, and the job does not notice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from tfy.contract import from_json, submission_tag
from tfy.errors import (
    EXIT_COULD_NOT_START,
    EXIT_JOB_FAILED,
    EXIT_OK,
    SpecError,
    UnreachableError,
    WaitLimitError,
)
from tfy.paths import JobDir
from tfy.records import JobReport, close_task
from tfy.states import JobState, job_state_of
from tfy.storage.hdfs import NotFoundError, Storage
from tfy.units import format_duration
from tfy.yarn.application import SKEIN_TYPE, Application, Wanted, YarnDoor
from tfy.yarn.find import is_application_id, is_submission_id, make_unknown, pick_job

_POLL_S = 1.0
# A ResourceManager that restarts is back within this time.
_UNREACHABLE_LIMIT_S = 60.0
# Files of jobs that are read side by side for a list.
_READERS = 8


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

    def __init__(self, yarn: YarnDoor, storage: Storage, user: str) -> None:
        """`user` is whose jobs are found by name."""
        self._yarn = yarn
        self._storage = storage
        self.user = user

    def find(self, target: str) -> Application:
        """The job's Skein application, by the job's name, an id of either application, or the submission id.

        Of a name: the job that has not ended, or else the newest. A submission id may be cut to its
        first eight characters. Raises `SpecError` where there is none, or several may be meant.
        """
        target = target.strip()
        if not target:
            raise SpecError("no job is named", hint="give its name as in job.yaml, or an id of it")
        if is_application_id(target):
            return self._find_application(target)
        mine = self._yarn.list_applications(Wanted(user=self.user))
        found = pick_job(target, mine)
        if found is None and is_submission_id(target):
            found = self._find_submission(target.lower())
        if found is None:
            raise make_unknown(target, self.user, mine)
        return found

    def _find_application(self, application_id: str) -> Application:
        found = self._yarn.report(application_id)
        if found is None:
            raise SpecError(f"{application_id}: YARN does not know this application")
        if found.submission_id is None:
            raise SpecError(f"{application_id}: this application is none of tfy's")
        if found.type == SKEIN_TYPE:
            return found
        return self._find_submission(found.submission_id) or found

    def _find_submission(self, submission_id: str) -> Application | None:
        found = self._yarn.list_applications(Wanted(tag=submission_tag(submission_id)))
        return found[-1] if found else None

    def list_views(self, *, user: str | None, ended: bool) -> tuple[JobView, ...]:
        """The jobs of `user` (None: of everybody), newest first; with `ended`, also those that have ended.

        How far a job is comes from its directory, and is read for those that run only.
        """
        applications = self._yarn.list_applications(Wanted(user=user, ended=ended))
        with ThreadPoolExecutor(_READERS, thread_name_prefix="views") as pool:
            return tuple(pool.map(self._view_in_list, reversed(applications)))

    def _view_in_list(self, application: Application) -> JobView:
        report, trouble = None, None
        if not application.state.final:
            report, trouble = self._try_report(application)
        return self._make_view(application, report, trouble)

    def view(self, application_id: str) -> JobView:
        """The job at this moment."""
        application = self._yarn.report(application_id)
        if application is None:
            raise UnreachableError(f"{application_id}: YARN does not know this application any more")
        if application.submission_id is None:
            raise SpecError(f"{application_id}: this application is none of tfy's")
        report, trouble = self._try_report(application)
        return self._make_view(application, report, trouble)

    def _try_report(self, application: Application) -> tuple[JobReport | None, str | None]:
        """The driver's word, or what kept it from being read: YARN's is enough to go on and to end with."""
        job_dir = self._job_dir(application)
        try:
            report = self._read_report(job_dir, ended=application.state.final)
        except UnreachableError as error:
            return None, error.message
        return (_close(report) if report is not None and application.state.final else report), None

    def _make_view(self, application: Application, report: JobReport | None, trouble: str | None) -> JobView:
        return JobView(
            application=application,
            submission_id=application.submission_id or "",
            job_dir=self._job_dir(application),
            report=report,
            trouble=trouble,
        )

    def _job_dir(self, application: Application) -> JobDir:
        return JobDir.of(self._storage.default_fs, application.user, application.submission_id or "")

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


def follow_job(
    jobs: Jobs,
    application_id: str,
    show: Callable[[JobView], None] | None = None,
    *,
    limit_s: float | None = None,
) -> JobView:
    """Shows the job's every new view until it has ended; the last view.

    Raises `WaitLimitError` where it has not ended within `limit_s` seconds: the job goes on.
    """
    began, lost_since = time.monotonic(), None
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
            if show is not None:
                show(view)
            if view.state.final:
                return view
        pause_s = _POLL_S
        if limit_s is not None:
            pause_s = min(pause_s, began + limit_s - time.monotonic())
            if pause_s <= 0:
                raise WaitLimitError(
                    f"{application_id} has not ended within {format_duration(limit_s)}; it goes on"
                )
        time.sleep(pause_s)


def _close(report: JobReport) -> JobReport:
    """The last that the driver told of a job that has ended: no task of it still runs."""
    ended = report.ended or report.updated
    return replace(report, tasks=tuple(close_task(record, ended) for record in report.tasks))
