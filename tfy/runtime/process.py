"""A program as the child of its node: start, watch, stop with all that it started."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfy.runtime import launch, proctree

_POLL_S = 0.05
_KILL_LIMIT_S = 5.0
_TAIL_BYTES = 1 << 20
_TRACEBACK_LINES = 40
_PLAIN_LINES = 10
# With these an error is 20 KiB at most: many tasks' fit into one answer of the rendezvous.
_LINE_LENGTH = 500
# Colours and titles (CSI, OSC), then any other control character.
_UNSEEN = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f]")
TRACEBACK = "Traceback (most recent call last):"


@dataclass(frozen=True, slots=True)
class Program:
    """A running program, whose standard output and error go to one log file."""

    log: Path
    _process: subprocess.Popen[bytes]
    _spared: frozenset[int]

    def exit_code(self) -> int | None:
        """None while it runs; negative for the signal that ended it."""
        return self._process.poll()

    def reap_orphans(self) -> None:
        """Takes leave of what the program left behind and has ended: it has become this node's child."""
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None or found.si_pid == self._process.pid or found.si_pid in self._spared:
                return
            os.waitpid(found.si_pid, 0)

    def stop(self, grace_s: float) -> int:
        """Ends it and all its descendants: SIGTERM, then after `grace_s` seconds SIGKILL."""
        if self.exit_code() is None:
            self._process.terminate()
            limit = time.monotonic() + grace_s
            while self.exit_code() is None and time.monotonic() < limit:
                time.sleep(_POLL_S)
        return self.kill_all()

    def kill_all(self) -> int:
        """Kills what is left of the program and of its descendants; the program's exit code."""
        limit = time.monotonic() + _KILL_LIMIT_S
        while time.monotonic() < limit:
            # As a subreaper this node has every orphan of the program as its own child.
            left = [pid for pid in proctree.list_descendants(os.getpid()) if pid not in self._spared]
            running = [pid for pid in left if proctree.is_running(pid)]
            if not running:
                break
            for pid in running:
                proctree.send(pid, signal.SIGKILL)
            time.sleep(_POLL_S)
        return self._process.wait(timeout=_KILL_LIMIT_S)

    def last_words(self) -> str:
        """The last traceback of the log, or its last lines."""
        return read_last_words(self.log)


def start_program(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    work_dir: Path,
    log: Path,
    spared: frozenset[int],
) -> Program:
    """Starts a program in the process group of this node.

    Must be called from the node's main thread, whose end the kernel takes for the node's.
    `spared` are children of the node that are no part of the program (its guard).
    """
    launcher = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid())]
    with log.open("ab") as sink:
        process = subprocess.Popen(
            [*launcher, *command],
            env=dict(env),
            cwd=work_dir,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    return Program(log, process, spared)


def read_last_words(log: Path) -> str:
    """The last traceback in a log file, else its last lines; empty where there is nothing."""
    try:
        with log.open("rb") as source:
            source.seek(0, os.SEEK_END)
            source.seek(max(0, source.tell() - _TAIL_BYTES))
            text = source.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    lines = text.rstrip().splitlines()
    starts = _find_tracebacks(lines)
    if not starts:
        return "\n".join(map(_shorten, lines[-_PLAIN_LINES:]))
    traceback = lines[_first_of_chain(lines, starts) :]
    if len(traceback) > _TRACEBACK_LINES:
        half = _TRACEBACK_LINES // 2
        traceback = [*traceback[:half], "  ...", *traceback[-half:]]
    return "\n".join(map(_shorten, traceback))


def telling_line(last_words: str) -> str:
    """The one line that says most: of a traceback its exception, else the last line."""
    lines = last_words.splitlines()
    starts = _find_tracebacks(lines)
    if starts:
        # Frames are indented; what was written after the exception is not part of it.
        for line in lines[starts[-1] + 1 :]:
            if line and not line[0].isspace():
                return line
    return lines[-1] if lines else ""


def _find_tracebacks(lines: list[str]) -> list[int]:
    return [number for number, line in enumerate(lines) if line.startswith(TRACEBACK)]


def _shorten(line: str) -> str:
    """A line that a terminal shows as it is: no escape sequences, and not too long."""
    line = _UNSEEN.sub("", line)
    if len(line) <= _LINE_LENGTH:
        return line
    half = _LINE_LENGTH // 2
    return f"{line[:half]} ... {line[-half:]}"


def _first_of_chain(lines: list[str], starts: list[int]) -> int:
    """Where the last traceback begins, with those that it says it came from."""
    first = starts[-1]
    for earlier in reversed(starts[:-1]):
        between = "\n".join(lines[earlier:first])
        if "During handling of the above exception" in between or "direct cause of the following" in between:
            first = earlier
        else:
            break
    return first
