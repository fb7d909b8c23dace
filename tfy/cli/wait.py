"""`tfy wait`: until a job has ended."""

from __future__ import annotations

import os

import click

from tfy.cli.options import job_argument, json_option, read_duration


@click.command()
@job_argument
@click.option(
    "--timeout",
    metavar="DURATION",
    callback=read_duration,
    help="How long at most, as 90s, 10m or 6h.  [default: no limit]",
)
@json_option
def wait(job: str, timeout: int | None, as_json: bool) -> int:
    """Wait, quietly, until a job has ended; the exit status is the job's.

    JOB is a job's name, an application id or a submission id. One line tells how it ended. The
    exit status is 0 where it succeeded, 1 where it failed or was killed, 4 where it could not
    start, and 124 where --timeout was reached first: the job goes on then, as on Ctrl-C (130).
    """
    from tfy.cli.watch import wait_for_job
    from tfy.yarn.session import open_jobs

    with open_jobs(os.environ) as jobs:
        return wait_for_job(jobs, jobs.find(job).id, timeout, as_json=as_json)
