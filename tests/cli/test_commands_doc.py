"""docs/commands.md holds every command with every option, and none that there is not."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from tests.cli.commands import list_commands
from tfy.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
SECTIONS = dict(re.findall(r"^## `([^`]+)`\n(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL))
COMMANDS = {
    path: command for path, command in list_commands().items() if not isinstance(command, click.Group)
}


def test_every_command_has_its_section_and_no_other() -> None:
    found = {
        " ".join(word for word in title.split() if word.isalpha() and word.islower()) for title in SECTIONS
    }
    assert found == set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS)
def test_a_section_has_the_options_of_its_command(path: str) -> None:
    (text,) = [text for title, text in SECTIONS.items() if f"{title} ".startswith(f"{path} ")]
    options = {
        name
        for parameter in COMMANDS[path].params
        if isinstance(parameter, click.Option)
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    rows = re.findall(r"^\| (`-.*?) \|", text, flags=re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(-[^`]+)`", row)} == options


@pytest.mark.parametrize("path", COMMANDS)
def test_a_title_has_the_arguments_of_its_command(path: str) -> None:
    (title,) = [title for title in SECTIONS if f"{title} ".startswith(f"{path} ")]
    # A command remembers its help option from the first context that it meets.
    context = click.Context(COMMANDS[path], **main.context_settings)
    usage = [word for piece in COMMANDS[path].collect_usage_pieces(context) for word in piece.split()]
    wanted = " ".join(word for word in usage if word != "[OPTIONS]")
    assert title.removeprefix(path).strip() == wanted.strip("{}")
