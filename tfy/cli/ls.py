"""`tfy ls`: which jobs there are."""

from __future__ import annotations

import os
from datetime import datetime, timezone

import click

from tfy.cli.options import json_option

EVERYBODY = "*"


@click.command()
@click.option("--all", "ended", is_flag=True, help="Also those that have ended, as long as YARN remembers.")
@click.option("--user", help="Another user's jobs; '*' for everybody's.  [default: your own]")
@json_option
def ls(ended: bool, user: str | None, as_json: bool) -> None:
    """List the jobs that run, or all that YARN remembers.

    One line a job, the newest first. With --json one object a line. No job at all is said on
    standard error, and is no error.
    """
    from tfy.cli import render
    from tfy.cli.listing import make_row
    from tfy.yarn.session import find_user, open_jobs

    owner = user or find_user(os.environ)
    with open_jobs(os.environ) as jobs:
        views = jobs.list_views(user=None if owner == EVERYBODY else owner, ended=ended)
    if not views:
        whose = "" if owner == EVERYBODY else f" of {owner}'s"
        render.narrate(f"YARN remembers no job{whose}" if ended else f"no job{whose} is running")
    now = datetime.now(timezone.utc)
    render.show_jobs([make_row(view, now) for view in views], as_json=as_json)
