"""`tfy completion`: make the shell complete verbs, jobs and tasks."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

# By click's rule, of the program's name.
COMPLETE_VARIABLE = "_TFY_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that makes a shell complete verbs, options, jobs and tasks.

    For bash, in ~/.bashrc: eval "$(tfy completion bash)". For zsh the same, in ~/.zshrc. For fish:
    tfy completion fish > ~/.config/fish/completions/tfy.fish
    """
    from tfy.cli import main, render

    kind = get_completion_class(shell)
    assert kind is not None
    render.show_text(kind(main, {}, "tfy", COMPLETE_VARIABLE).source().strip("\n"))
