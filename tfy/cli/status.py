"""`tfy status`: how a job stands, or how it ended."""

from __future__ import annotations

import os

import click

from tfy.cli.options import json_option
from tfy.errors import EXIT_OK


@click.command()
@click.argument("job", metavar="APP|NAME")
@click.option("--follow", is_flag=True, help="Follow it until it ends; the exit status is the job's.")
@json_option
def status(job: str, follow: bool, as_json: bool) -> int:
    """Show a job by its application id, or the newest one of a name."""
    from tfy.cli import render
    from tfy.cli.watch import watch_job
    from tfy.yarn.session import open_jobs

    with open_jobs(os.environ) as jobs:
        application_id = jobs.find(job).id
        if follow:
            return watch_job(jobs, application_id, as_json=as_json)
        render.show_status(jobs.view(application_id), as_json=as_json)
    return EXIT_OK
