"""`tfy submit`: one job.yaml to the cluster."""

from __future__ import annotations

import os
import sys
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

import click

from tfy.cli.options import json_option
from tfy.errors import EXIT_OK
from tfy.load import load


@click.command()
@click.argument("job_yaml", type=click.Path(path_type=Path), metavar="JOB.yaml")
@click.option(
    "--follow/--detach",
    default=None,
    help="Show the job until it ends, or return once it is submitted.  [default: follow on a terminal]",
)
@click.option("--dry-run", is_flag=True, help="Show the plan; send nothing.")
@json_option
def submit(job_yaml: Path, follow: bool | None, dry_run: bool, as_json: bool) -> int:
    """Submit the training job that JOB.yaml describes.

    The application id is printed on standard output as soon as YARN gave it. The exit status
    is the job's when it is followed: 0 succeeded, 1 failed or killed, 4 could not start.
    Ctrl-C stops following, never the job.
    """
    spec = load(job_yaml, os.environ)
    # Heavy parts (Skein, HDFS) are loaded only once the file is known to be right.
    from tfy.cli import render
    from tfy.cli.watch import watch_job
    from tfy.yarn.credentials import make_credentials
    from tfy.yarn.follow import Jobs
    from tfy.yarn.session import find_cluster, open_yarn
    from tfy.yarn.stage import Sources
    from tfy.yarn.submit import plan_job, submit_job

    cluster = find_cluster(os.environ)
    plan = plan_job(spec, cluster)
    if dry_run:
        render.show_plan(plan, as_json=as_json)
        return EXIT_OK
    credentials = make_credentials(datetime.now(timezone.utc), plan.total_timeout_s)
    sources = Sources(spec=spec, conf_dir=cluster.hadoop.conf_dir, credentials=credentials)
    announce = partial(render.show_submission, as_json=as_json)
    with open_yarn(cluster, os.environ, credentials) as yarn:
        application_id = submit_job(plan, yarn, cluster, sources, announce, render.narrate)
        if not (sys.stdout.isatty() if follow is None else follow):
            render.narrate(f"`tfy status {application_id}` shows it, with --follow until it ends")
            return EXIT_OK
        return watch_job(Jobs(yarn, cluster.storage, cluster.user), application_id, as_json=as_json)
