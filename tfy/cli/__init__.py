"""The command line `tfy`. A verb's module is loaded when the verb is used, so that help is quick."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import click

from tfy.cli import edge

VERBS: Mapping[str, str] = MappingProxyType(
    {
        "init": "Write a commented job.yaml for a program.",
        "submit": "Submit the training job that JOB.yaml describes.",
        "status": "Show how a job stands, or how and why it ended.",
        "logs": "Show what the programs of a job's tasks have written, live or afterwards.",
        "wait": "Wait, quietly, until a job has ended; the exit status is the job's.",
        "ls": "List the jobs that run, or all that YARN remembers.",
        "kill": "End a job now, with every process that it started.",
        "completion": "Print the script that makes a shell complete verbs, options, jobs and tasks.",
        "cluster": "A real Hadoop on this machine: HDFS and YARN, for trying out and for tests.",
    }
)
"""Verb → its line in `tfy --help`. The verb itself is `tfy.cli.<verb>.<verb>`."""


class VerbGroup(click.Group):
    """A group whose commands live in modules of their own, and whose errors end at the edge."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order of their use."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, from its module."""
        if cmd_name not in VERBS:
            return None
        command = getattr(importlib.import_module(f"tfy.cli.{cmd_name}"), cmd_name)
        if not isinstance(command, click.Command):
            raise TypeError(f"tfy.cli.{cmd_name}.{cmd_name} is no command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of verbs, without loading any."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # Click ends without a word on any broken pipe, also on one to the cluster.
            raise edge.PipeError(f"a connection was closed: {error}") from error

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line and exit with its status."""
        kwargs["standalone_mode"] = False
        run = super().main
        sys.exit(edge.run(lambda: run(*args, **kwargs), os.environ))


@click.group(cls=VerbGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tfy")
def main() -> None:
    """Train TensorFlow on a Hadoop YARN cluster from one YAML file.

    Exit status: 0 succeeded, 1 the job failed or was killed, 2 the job file or the command line is
    wrong, 3 the cluster or the storage cannot be reached or refuses, 4 the job could not start,
    124 the job did not end within the limit of `tfy wait`, 130 interrupted.
    """
