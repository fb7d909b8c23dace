"""Arguments and options that several verbs share, so that they read and work alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from tfy.cli.complete import complete_job
from tfy.units import UnitError, parse_duration_s

Verb = TypeVar("Verb", bound=Callable[..., Any])


def read_duration(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """An option's callback: a duration such as `90 s`, `10m` or `6h`, in seconds."""
    if value is None:
        return None
    try:
        return parse_duration_s(value)
    except UnitError as error:
        raise click.BadParameter(error.message, context, parameter) from error


def job_argument(verb: Verb) -> Verb:
    """JOB, as the argument `job`: what `tfy.yarn.follow.Jobs.find` takes."""
    return click.argument("job", metavar="JOB", shell_complete=complete_job)(verb)


def json_option(verb: Verb) -> Verb:
    """`--json`, as the argument `as_json`: results on standard output as JSON, one object a line."""
    return click.option("--json", "as_json", is_flag=True, help="Print results as JSON.")(verb)
