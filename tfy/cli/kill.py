"""`tfy kill`: end a job now."""

from __future__ import annotations

import os

import click

from tfy.cli.options import job_argument


@click.command()
@job_argument
def kill(job: str) -> None:
    """End a job now, with every process that it started.

    JOB is a job's name, an application id or a submission id. A name of which several jobs run is
    refused, with the list of them. One that has ended already is no error.
    """
    from tfy.cli import render
    from tfy.yarn.session import open_jobs

    with open_jobs(os.environ) as jobs:
        application = jobs.find(job)
        if application.state.final:
            render.narrate(f"{application.id} has ended already: {application.final_status}")
            return
        jobs.kill(jobs.view(application.id))
    render.narrate(f"killed {application.name} ({application.id})")
