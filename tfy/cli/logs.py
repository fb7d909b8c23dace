"""`tfy logs`: what a job's tasks have written."""

from __future__ import annotations

import os
from typing import Any

import click

from tfy.cli.complete import complete_task
from tfy.cli.options import job_argument, json_option
from tfy.errors import EXIT_OK


@click.command()
@job_argument
@click.argument("tasks", metavar="[TASK]...", nargs=-1, shell_complete=complete_task)
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="The last N lines of each log only.")
@click.option("--driver", is_flag=True, help="Also the driver's log.")
@click.option(
    "--system",
    is_flag=True,
    help="Also what Skein, Spark and the nodes wrote, of both applications; fold nothing.",
)
@json_option
def logs(job: str, tasks: tuple[str, ...], as_json: bool, **choices: Any) -> int:
    """Show what the programs of a job's tasks have written, live or afterwards.

    TASK is a task (`worker:1`) or a type of tasks (`worker`); without one all tasks are shown. Lines of
    several tasks are merged by the time at which they were written. What TensorFlow and Spark
    write at every start is folded into one line.

    The exit status is 0 whatever became of the job.
    """
    from tfy.cli.log_screen import LogScreen
    from tfy.yarn.logs_model import LogRequest
    from tfy.yarn.logs_open import read_lines

    request = LogRequest(tasks=tasks, **choices)
    screen = LogScreen(request, as_json=as_json)
    for line in read_lines(os.environ, job, request, screen.narrate, screen.begin, screen.draw):
        screen.show(line)
    return EXIT_OK
