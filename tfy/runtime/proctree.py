"""Processes as /proc shows them (Linux): descendants, and those of one YARN container."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

_PROC = Path("/proc")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def die_with_parent() -> None:
    """The kernel kills this process when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Descendants whose parent ends become children of this process, not of init."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def list_descendants(root: int) -> tuple[int, ...]:
    """Process ids below `root`, whatever session or process group they moved to."""
    parents = _read_parents()
    found: list[int] = []
    level = {root}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level}
        found.extend(sorted(level))
    return tuple(found)


def list_ancestors(pid: int) -> tuple[int, ...]:
    """Process ids above `pid`, nearest first, without init."""
    parents = _read_parents()
    found: list[int] = []
    while (pid := parents.get(pid, 0)) > 1:
        found.append(pid)
    return tuple(found)


def list_of_container(container_id: str) -> tuple[int, ...]:
    """Processes that carry the container's id in their environment, this one excepted."""
    mark = f"CONTAINER_ID={container_id}".encode()
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue  # it ended, or belongs to another user
        if mark in environment.split(b"\0"):
            found.append(int(entry.name))
    return tuple(found)


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    fields = _read_stat(pid)
    return fields is not None and fields[0] not in ("Z", "X")


def send(pid: int, signum: int) -> None:
    """Sends a signal; a process that has ended meanwhile is no error."""
    try:
        os.kill(pid, signum)
    except ProcessLookupError:
        return


def _read_parents() -> dict[int, int]:
    parents = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            fields = _read_stat(int(entry.name))
            if fields is not None:
                parents[int(entry.name)] = int(fields[1])
    return parents


def _read_stat(pid: int) -> list[str] | None:
    """State, parent and the rest of /proc/<pid>/stat; None where the process has ended."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The command stands in brackets and may itself hold blanks and brackets.
    return text.rpartition(")")[2].split()


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
