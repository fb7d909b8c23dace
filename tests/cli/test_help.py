"""Help is quick: it loads nothing heavy. It is complete: each verb says what its module says."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version

import click
import pytest
from click.testing import CliRunner

from tests.cli.commands import list_commands
from tfy.cli import VERBS, main

HEAVY = ("tensorflow", "pyspark", "grpc", "skein", "hdfs_native")

PROBE = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
from tfy.cli import main
main(sys.argv[1:], prog_name="tfy")
"""


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"], *([verb, "--help"] for verb in VERBS)])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, timeout=60
    )
    loaded = json.loads(ended.stderr.splitlines()[-1])
    assert "tfy.cli" in loaded
    assert not [name for name in loaded if name.partition(".")[0] in HEAVY]
    assert ended.returncode == (0 if arguments else 2)


def test_the_table_of_verbs_says_what_each_verb_says() -> None:
    context = click.Context(main)
    for verb, line in VERBS.items():
        command = main.get_command(context, verb)
        assert command is not None
        assert (command.help or "").split("\n\n")[0].replace("\n", " ") == line
    assert main.list_commands(context) == list(VERBS)


@pytest.mark.parametrize("path", list_commands())
def test_every_verb_and_option_has_help(path: str) -> None:
    command = list_commands()[path]
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{path} {parameter.name}"


@pytest.mark.parametrize("path", ["tfy", *list_commands()])
def test_help_is_short_and_long_everywhere(path: str) -> None:
    words = path.split()[1:]
    short, long = (CliRunner().invoke(main, [*words, option], prog_name="tfy") for option in ("-h", "--help"))
    assert short.exit_code == long.exit_code == 0
    assert short.stdout == long.stdout
    assert short.stdout.startswith(f"Usage: {path} ")


def test_version() -> None:
    assert (
        CliRunner().invoke(main, ["--version"], prog_name="tfy").output == f"tfy, version {version('tfy')}\n"
    )


def test_python_m_tfy() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tfy", "--help"], capture_output=True, text=True, timeout=60
    )
    assert ended.stdout.startswith("Usage: tfy [OPTIONS] COMMAND")
