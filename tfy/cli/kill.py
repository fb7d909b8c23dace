"""`tfy kill`: end a job now."""

from __future__ import annotations

import os

import click


@click.command()
@click.argument("job", metavar="APP|NAME")
def kill(job: str) -> None:
    """Kill a job by its application id, or the newest one of a name that still runs."""
    from tfy.cli import render
    from tfy.yarn.session import open_jobs

    with open_jobs(os.environ) as jobs:
        application = jobs.find(job)
        if application.state.final:
            render.narrate(f"{application.id} has ended already: {application.final_status}")
            return
        jobs.kill(jobs.view(application.id))
    render.narrate(f"killed {application.name} ({application.id})")
