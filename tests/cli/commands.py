"""Every command of `tfy`, groups and their members too."""

from __future__ import annotations

import click

from tfy.cli import VERBS, main


def list_commands() -> dict[str, click.Command]:
    """Each command by the words that call it, as `tfy cluster up`."""
    context, found = click.Context(main), {}
    for verb in VERBS:
        command = main.get_command(context, verb)
        assert command is not None, verb
        found[f"tfy {verb}"] = command
        if isinstance(command, click.Group):
            found.update({f"tfy {verb} {name}": inner for name, inner in command.commands.items()})
    return found
