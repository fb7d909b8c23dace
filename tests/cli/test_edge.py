"""The edge: each kind of error becomes its text on standard error and its exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.job_files import SMALLEST, make_folder
from tfy.cli import edge, main
from tfy.errors import (
    EXIT_INTERRUPTED,
    EXIT_SPEC,
    InternalError,
    JobFailedError,
    SpecError,
    StartError,
    TfyError,
    UnreachableError,
)


def raiser(error: BaseException) -> object:
    raise error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (JobFailedError("it failed"), 1),
        (InternalError("it failed"), 1),
        (SpecError("it failed"), 2),
        (UnreachableError("it failed", hint="try this"), 3),
        (StartError("it failed"), 4),
    ],
)
def test_an_error_of_ours(error: TfyError, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert edge.run(lambda: raiser(error), {}) == status
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "error: it failed\n" + (f"hint: {error.hint}\n" if error.hint else "")


def test_an_error_of_many_lines_is_indented_and_never_folded(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"job.yaml:{line}: " + "word " * 60 + "[end]" for line in (1, 2)]
    edge.run(lambda: raiser(SpecError("\n".join(lines))), {})
    assert capsys.readouterr().err == f"error: {lines[0]}\n       {lines[1]}\n"


def test_an_unexpected_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert edge.run(lambda: raiser(KeyError("x")), {}) == 1
    assert capsys.readouterr().err == (
        "error: tfy itself failed: KeyError: 'x'\nhint: TFY_DEBUG=1 in the environment shows where\n"
    )


def test_with_tfy_debug_the_traceback_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert edge.run(lambda: raiser(KeyError("x")), {"TFY_DEBUG": "1"}) == 1
    shown = capsys.readouterr().err
    assert "Traceback (most recent call last):" in shown
    assert "in raiser" in shown
    assert "error: tfy itself failed: KeyError: 'x'" in shown


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    assert edge.run(lambda: raiser(error), {}) == EXIT_INTERRUPTED
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("result", "status"), [(None, 0), (0, 0), (5, 5)])
def test_a_verb_returns_its_status(result: object, status: int) -> None:
    assert edge.run(lambda: result, {}) == status


def test_a_broken_connection_is_not_taken_for_a_closed_output(capfd: pytest.CaptureFixture[str]) -> None:
    assert edge.run(lambda: raiser(edge.PipeError("a connection was closed")), {}) == 1
    assert "a connection was closed" in capfd.readouterr().err


@pytest.mark.parametrize(
    "write",
    ["render.show_text('x')", "render.make_console().print('x')", "sys.stdout.write('x')"],
)
def test_a_reader_that_leaves_is_no_fault(write: str) -> None:
    code = f"import sys\nfrom tfy.cli import edge, render\nsys.exit(edge.run(lambda: {write}, {{}}))"
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            [sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, timeout=60
        )
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (EXIT_INTERRUPTED, b"")


@pytest.mark.parametrize("arguments", [["nosuchverb"], ["submit"], ["submit", "--nosuch"], ["--nosuch"]])
def test_wrong_usage_is_2(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.stderr


def test_a_misspelt_key_is_refused_before_any_cluster_is_looked_for(tmp_path: Path) -> None:
    job = make_folder(tmp_path) / "job.yaml"
    job.write_text(SMALLEST.replace("worker: {memory", "worker: {memroy"), encoding="utf-8")
    result = CliRunner().invoke(
        main, ["submit", str(job)], env={"HADOOP_CONF_DIR": str(tmp_path / "nowhere")}
    )
    assert result.exit_code == EXIT_SPEC
    assert result.stdout == ""
    assert result.stderr == (
        f'error: {job}:5: tasks.worker.memroy: unknown key; did you mean "memory"? '
        "known keys: instances, memory, vcores, gpus, node_label\n"
    )


def test_no_hadoop_is_told_with_the_command_that_helps(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    environ = {
        **{name: value for name, value in os.environ.items() if name != "HADOOP_CONF_DIR"},
        "TFY_CLUSTER_DIR": str(tmp_path / "nothing"),
        "PATH": "/usr/bin:/bin",
    }
    job = folder / "job.yaml"
    job.write_text(SMALLEST, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "tfy", "submit", str(job)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert "HADOOP_CONF_DIR is not set" in done.stderr
    assert "PATH has no `yarn`" in done.stderr
    assert str(tmp_path / "nothing") in done.stderr
    assert done.stderr.endswith("hint: tfy cluster up\n")
