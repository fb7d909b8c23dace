"""`tfy status`: how a job stands, or how it ended."""

from __future__ import annotations

import os

import click

from tfy.cli.options import job_argument, json_option
from tfy.errors import EXIT_OK


@click.command()
@job_argument
@click.option("--follow", is_flag=True, help="Follow it until it ends; the exit status is the job's.")
@json_option
def status(job: str, follow: bool, as_json: bool) -> int:
    """Show how a job stands, or how and why it ended.

    JOB is a job's name (then the one that runs, or else the newest), an application id or a
    submission id, of which eight characters are enough. A name of which several jobs run is
    refused, with the list of them.
    """
    from tfy.cli import render
    from tfy.cli.watch import watch_job
    from tfy.yarn.session import open_jobs

    with open_jobs(os.environ) as jobs:
        application_id = jobs.find(job).id
        if follow:
            return watch_job(jobs, application_id, as_json=as_json)
        render.show_status(jobs.view(application_id), as_json=as_json)
    return EXIT_OK
