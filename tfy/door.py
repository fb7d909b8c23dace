"""The Python door: submit a job, look at it, wait for it and end it, from a program or a notebook.

    import tfy

    job = tfy.submit("job.yaml")
    view = job.wait(timeout_s=3600, check=True)

Nothing here prints or exits; what goes wrong is raised as one of `tfy.errors`. The command line
goes through the same functions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from tfy.errors import JobFailedError
from tfy.load import load
from tfy.load_mapping import load_mapping, make_job_yaml
from tfy.paths import aside_of
from tfy.plan_model import Plan
from tfy.spec import JobSpec
from tfy.states import JobState
from tfy.yarn.application import Application
from tfy.yarn.follow import JobView, follow_job
from tfy.yarn.session import Cluster, find_cluster, open_jobs, open_yarn

if TYPE_CHECKING:
    from tfy.yarn.inputs import SharedInput
    from tfy.yarn.logs_model import LogLine
    from tfy.yarn.submit import Submission

JobSource = str | os.PathLike[str] | Mapping[str, object]
"""A job: the path of its job.yaml, or a mapping with the same keys."""


@dataclass(frozen=True, slots=True)
class Job:
    """One submitted job. It is only a name for it: every method asks the cluster anew.

    `environ` says which cluster (HADOOP_CONF_DIR and so on) and None is this process's own
    environment. Methods raise `UnreachableError` where the cluster does not answer.
    """

    application_id: str
    submission_id: str
    name: str
    environ: Mapping[str, str] | None = field(default=None, repr=False)

    def status(self) -> JobView:
        """How the job stands, or how it ended."""
        with open_jobs(_environ(self.environ)) as jobs:
            return jobs.view(self.application_id)

    def wait(
        self,
        *,
        timeout_s: float | None = None,
        check: bool = False,
        show: Callable[[JobView], None] | None = None,
    ) -> JobView:
        """Waits until the job has ended; how it did. `show` gets each new view on the way.

        Raises `WaitLimitError` where it has not ended after `timeout_s` seconds (the job goes on),
        and, with `check`, `JobFailedError` where it failed, was killed or could not start.
        """
        with open_jobs(_environ(self.environ)) as jobs:
            view = follow_job(jobs, self.application_id, show, limit_s=timeout_s)
        if check and view.state is not JobState.SUCCEEDED:
            raise _make_failure(view)
        return view

    def logs(
        self,
        *tasks: str,
        follow: bool = False,
        tail: int | None = None,
        driver: bool = False,
        system: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> Iterator[LogLine]:
        """What the programs of `tasks` (`worker:1`, or `worker` for all; none: of all) have written, by time.

        `follow` goes on until the job has ended, `tail` gives each log's last lines only, `driver` and
        `system` add the driver's log, and what Skein, Spark and the nodes wrote. `progress` hears
        what is waited for. Raises `SpecError` for a task that the job does not have.
        """
        from tfy.yarn.logs_model import LogRequest
        from tfy.yarn.logs_open import read_lines

        request = LogRequest(tasks=tasks, driver=driver, system=system, tail=tail, follow=follow)
        return read_lines(_environ(self.environ), self.application_id, request, progress or _ignore)

    def kill(self) -> None:
        """Ends the job now, with every process that it started. One that has ended is no error."""
        with open_jobs(_environ(self.environ)) as jobs:
            view = jobs.view(self.application_id)
            if not view.state.final:
                jobs.kill(view)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A job that has been checked and planned, and not been sent."""

    plan: Plan
    spec: JobSpec
    job_yaml: bytes
    cluster: Cluster
    environ: Mapping[str, str] = field(repr=False)

    def share_input(
        self, progress: Callable[[str], None] | None = None, *, keeps: bool = False
    ) -> SharedInput | None:
        """The job's input, listed and shared out among its tasks; None where it has none.

        Counted records are remembered on HDFS with `keeps`. Raises `SpecError` where files are missing,
        cannot be read or be shared out.
        """
        from tfy.yarn.submit import share_job_input

        return share_job_input(self.plan, self.cluster, progress or _ignore, keeps=keeps)

    def send(
        self,
        announce: Callable[[Submission], None] | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Job:
        """Stages the job's files and submits it; `announce` hears of it the moment that YARN took it."""
        from tfy.yarn.credentials import make_credentials
        from tfy.yarn.stage import Sources
        from tfy.yarn.submit import check_request, submit_job

        tell = progress or _ignore
        for text in _tell_fresh(self.plan):
            tell(text)
        credentials = make_credentials(datetime.now(timezone.utc), self.plan.total_timeout_s)
        with open_yarn(self.cluster, self.environ, credentials) as yarn:
            check_request(self.plan, yarn, self.cluster, tell)
            shared = self.share_input(tell, keeps=True)
            for label, text in shared.pairs() if shared else ():
                tell(f"{label}: {text}" if label else text)
            sources = Sources(
                spec=self.spec,
                job_yaml=self.job_yaml,
                conf_dir=self.cluster.hadoop.conf_dir,
                credentials=credentials,
                shares=shared.shares if shared else None,
            )
            application_id = submit_job(self.plan, yarn, self.cluster, sources, announce or _ignore, tell)
        environ = None if self.environ is os.environ else self.environ
        return Job(application_id, self.plan.submission_id, self.plan.name, environ)


def prepare(
    job: JobSource,
    *,
    base_dir: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    fresh: bool = False,
) -> Prepared:
    """Checks and plans a job, and sends nothing. Raises `SpecError` with all that is wrong at once.

    `base_dir` is what the paths of a mapping are relative to, the working directory unless told.
    `fresh` starts over where the job's older checkpoints would be resumed from.
    """
    environ = _environ(environ)
    if isinstance(job, Mapping):
        spec = load_mapping(job, Path(base_dir or Path.cwd()), environ)
        job_yaml = make_job_yaml(job)
    else:
        spec = load(Path(job), environ)
        job_yaml = spec.source.read_bytes()
    # Skein is loaded only once the job is known to be right.
    from tfy.yarn.submit import plan_job

    cluster = find_cluster(environ)
    plan = plan_job(spec, cluster, fresh=fresh)
    return Prepared(plan=plan, spec=spec, job_yaml=job_yaml, cluster=cluster, environ=environ)


def submit(
    job: JobSource,
    *,
    base_dir: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    fresh: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Job:
    """Submits a job: the path of its job.yaml, or a mapping with the same keys (see `prepare`).

    `progress` gets a line of text for each step. Raises `SpecError` where the job is wrong,
    `UnreachableError` where the cluster does not answer or refuses. Returns at once: `Job.wait` waits.
    """
    prepared = prepare(job, base_dir=base_dir, environ=environ, fresh=fresh)
    return prepared.send(progress=progress)


def find(target: str, *, environ: Mapping[str, str] | None = None) -> Job:
    """The job of a name, of an application id or of a submission id.

    Of a name: the job that has not ended, or else the newest. Raises `SpecError` where there is
    none, and where several of a name run.
    """
    with open_jobs(_environ(environ)) as jobs:
        return _job_of(jobs.find(target), environ)


def jobs(
    *, user: str | None = None, ended: bool = False, environ: Mapping[str, str] | None = None
) -> tuple[Job, ...]:
    """The jobs of `user` (None: your own) that run, newest first; with `ended`, the others too."""
    surroundings = _environ(environ)
    with open_jobs(surroundings) as opened:
        views = opened.list_views(user=user or opened.user, ended=ended)
    return tuple(_job_of(view.application, environ) for view in views)


def _tell_fresh(plan: Plan) -> list[str]:
    if not plan.fresh:
        return []
    if plan.checkpoint_dir is None:
        return ["a fresh start changes nothing: the job has no checkpoint.dir to resume from"]
    aside = aside_of(plan.checkpoint_dir, plan.submission_id)
    return [f"a fresh start: before the first task starts, {plan.checkpoint_dir} becomes {aside}"]


def _environ(environ: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environ is None else environ


def _job_of(application: Application, environ: Mapping[str, str] | None) -> Job:
    return Job(application.id, application.submission_id or "", application.name, environ)


def _make_failure(view: JobView) -> JobFailedError:
    application = view.application
    error = JobFailedError(
        f"{application.name} {view.state.value}: {view.cause} ({application.id})",
        hint=f"tfy status {application.id}",
    )
    error.exit_status = view.exit_status
    return error


def _ignore(_told: object) -> None:
    """For who does not want to be told."""
