"""`tfy submit`: one job.yaml to the cluster."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import click

from tfy.cli.options import json_option
from tfy.errors import EXIT_OK


@click.command()
@click.argument("job_yaml", type=click.Path(path_type=Path), metavar="JOB.yaml")
@click.option(
    "--follow/--detach",
    default=None,
    help="Show the job until it ends, or return once it is submitted.  [default: follow on a terminal]",
)
@click.option("--fresh", is_flag=True, help="Start over; older checkpoints of the job are moved aside.")
@click.option("--dry-run", is_flag=True, help="Show the plan; send nothing.")
@json_option
def submit(job_yaml: Path, follow: bool | None, fresh: bool, dry_run: bool, as_json: bool) -> int:
    """Submit the training job that JOB.yaml describes.

    The application id is printed on standard output as soon as YARN gave it. The exit status
    is the job's when it is followed: 0 succeeded, 1 failed or killed, 4 could not start.
    Ctrl-C stops following, never the job.
    """
    from tfy import door
    from tfy.cli import render
    from tfy.cli.watch import watch_job
    from tfy.yarn.session import open_jobs

    prepared = door.prepare(job_yaml, fresh=fresh)
    if dry_run:
        shared = prepared.share_input(render.narrate)
        render.show_plan(prepared.plan, shared.pairs() if shared else (), as_json=as_json)
        return EXIT_OK
    announce = partial(render.show_submission, as_json=as_json)
    application_id = prepared.send(announce, render.narrate).application_id
    if not (sys.stdout.isatty() if follow is None else follow):
        render.narrate(f"`tfy status {application_id}` shows it, with --follow until it ends")
        return EXIT_OK
    with open_jobs(os.environ) as jobs:
        return watch_job(jobs, application_id, as_json=as_json)
