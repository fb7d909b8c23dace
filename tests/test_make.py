"""`make` lists its targets, and says first what the machine lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TARGETS = ("help", "venv", "demo", "test", "check", "docs", "format", "clean")
# What make and .ci/prerequisites themselves run; not java, cargo or python3.
TOOLS = ("make", "bash", "sh", "env", "find", "awk", "sed", "head", "id", "dirname", "uname", "cc")


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A folder for PATH on a machine that has neither Java nor cargo nor Python."""
    for tool in TOOLS:
        found = shutil.which(tool)
        if found is not None:
            (tmp_path / tool).symlink_to(found)
    return tmp_path


def run_make(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    # These tests may run under make themselves, which tells a make below it so.
    hidden = ("JAVA_HOME", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    environ = {name: value for name, value in os.environ.items() if name not in hidden}
    if path is not None:
        environ = {**environ, "PATH": str(path)}
    command = [shutil.which("make") or "make", *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )


def test_make_alone_lists_the_targets() -> None:
    ended = run_make()
    assert ended.returncode == 0
    lines = [line for line in ended.stdout.splitlines() if line.startswith("make ")]
    assert tuple(line.split()[1] for line in lines) == TARGETS
    assert all(len(line.split()) > 3 for line in lines)


def test_what_is_missing_is_said_first_with_the_line_that_installs_it(bare_path: Path) -> None:
    ended = run_make(path=bare_path)
    lines = ended.stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("missing: ")] == ["python3", "Java", "cargo"]
    assert [line.startswith("  install it: ") for line in lines[:6]] == [False, True] * 3
    assert "openjdk-17" in ended.stdout
    assert "rustup" in ended.stdout
    assert "make demo" in ended.stdout


@pytest.mark.parametrize("target", ["prerequisites", "venv", "demo"])
def test_nothing_starts_on_a_machine_that_lacks_something(target: str, bare_path: Path) -> None:
    if target != "prerequisites":
        # As if .venv were out of date, whatever stands in this checkout.
        ended = run_make("--dry-run", "--always-make", target, path=bare_path)
        first = ended.stdout.splitlines()[0]
        assert first.endswith(".ci/prerequisites")
        return
    ended = run_make(target, path=bare_path)
    assert ended.returncode != 0
    assert "missing: Java" in ended.stdout


def test_an_old_java_is_refused(bare_path: Path) -> None:
    java = bare_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.20\" 2023-07-18' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    assert "missing: Java (java 11.0.20; 17 or newer is needed)" in run_make(path=bare_path).stdout
