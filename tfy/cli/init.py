"""`tfy init`: a job.yaml to start from."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import get_args

import click

from tfy.errors import SpecError
from tfy.spec import Strategy


@click.command()
@click.argument("program", required=False, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("job.yaml"),
    show_default=True,
    help="The file to write.",
)
@click.option(
    "--strategy",
    type=click.Choice(get_args(Strategy)),
    help="How it trains.  [default: by the program's text]",
)
@click.option("--force", is_flag=True, help="Overwrite the file where it exists.")
def init(program: Path | None, output: Path, strategy: Strategy | None, force: bool) -> None:
    """Write a commented job.yaml for a program.

    The program is read, never run: its text tells the strategy, and which modules beside it have
    to come along. Without PROGRAM it is train.py, or the only Python file of the folder.
    """
    from tfy.cli import render
    from tfy.job_template import Draft, make_template
    from tfy.program_text import read_program

    if output.is_dir():
        raise SpecError(f"{output} is a folder; give the file to write")
    folder = output.absolute().parent
    path = _find_program(folder) if program is None else program.absolute()
    if not path.is_file():
        raise SpecError(f"{path}: no such file; give the Python program that trains")
    facts = read_program(path)
    draft = Draft(
        program=_relate(path, folder),
        files=tuple(_relate(module, folder) for module in facts.modules),
        strategy=strategy or facts.strategy,
    )
    _write(output, make_template(draft), force=force)
    render.narrate(f"strategy {draft.strategy}" + ("" if strategy else f": {facts.why}"))
    if draft.files:
        render.narrate(f"files {', '.join(draft.files)}: {draft.program} imports them")
    render.narrate(f"`tfy submit {shlex.quote(str(output))} --dry-run` shows what it asks of the cluster")
    render.show_text(str(output))


def _find_program(folder: Path) -> Path:
    """The program that is meant where none is named."""
    if (folder / "train.py").is_file():
        return folder / "train.py"
    found = sorted(folder.glob("*.py"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "no Python file"
        raise SpecError(
            f"{folder} has {names}: which one trains?", hint="tfy init PROGRAM, as in: tfy init train.py"
        )
    return found[0]


def _relate(path: Path, folder: Path) -> str:
    try:
        relative = path.resolve().relative_to(folder.resolve())
    except ValueError as error:
        raise SpecError(
            f"{path} is not within {folder}, where job.yaml is to be",
            hint="write it beside the program: tfy init PROGRAM -o FOLDER/job.yaml",
        ) from error
    return f"{relative.as_posix()}/" if path.is_dir() else relative.as_posix()


def _write(output: Path, text: str, *, force: bool) -> None:
    try:
        with output.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise SpecError(f"{output} exists already", hint="--force overwrites it") from error
    except OSError as error:
        raise SpecError(f"{output}: cannot be written: {error.strerror}") from error
