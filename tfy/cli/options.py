"""Options that several verbs share, so that they read and work alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Verb = TypeVar("Verb", bound=Callable[..., Any])


def json_option(verb: Verb) -> Verb:
    """`--json`, as the argument `as_json`: results on standard output as JSON, one object a line."""
    return click.option("--json", "as_json", is_flag=True, help="Print results as JSON.")(verb)
