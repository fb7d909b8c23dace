"""`tfy status`: how a job stands, or how it ended."""

from __future__ import annotations

import os

import click

from tfy.cli.options import json_option


@click.command()
@click.argument("job", metavar="APP|NAME")
@json_option
def status(job: str, as_json: bool) -> None:
    """Show a job by its application id, or the newest one of a name."""
    from tfy.cli import render
    from tfy.yarn.session import open_jobs

    with open_jobs(os.environ) as jobs:
        view = jobs.view(jobs.find(job).id)
    render.show_status(view, as_json=as_json)
