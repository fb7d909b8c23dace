"""Processes of this machine, told apart for certain, and ended by their ids."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process: its id alone is used again by the system, its start and the boot are not."""

    pid: int
    start_ticks: int
    boot_id: str


def boot_id() -> str:
    """What names this boot of this machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> ProcessId | None:
    """Who `pid` is now; None where no process is left (a zombie is none)."""
    try:
        # The command's name, in parentheses, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if fields[0] in ("Z", "X") and not _has_threads(pid):
        return None
    return ProcessId(pid, int(fields[19]), boot_id())


def _has_threads(pid: int) -> bool:
    """Whether other threads outlive the first one: until they end, the process keeps its ports."""
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except OSError:
        return False


def is_alive(process: ProcessId) -> bool:
    """Whether this very process still runs."""
    return identify(process.pid) == process


def stop(
    processes: Sequence[ProcessId], *, term_timeout_s: float, kill_timeout_s: float = 10.0
) -> list[ProcessId]:
    """SIGTERM, then SIGKILL for what is left after the limit; returns what survived even that."""
    for number, timeout_s in ((signal.SIGTERM, term_timeout_s), (signal.SIGKILL, kill_timeout_s)):
        alive = [process for process in processes if is_alive(process)]
        for process in alive:
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)
        wait_gone(alive, timeout_s)
    return [process for process in processes if is_alive(process)]


def wait_gone(processes: Sequence[ProcessId], timeout_s: float) -> bool:
    """Whether all of them ended within the limit."""
    deadline = time.monotonic() + timeout_s
    while any(map(is_alive, processes)):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def containers_below(folder: Path) -> list[ProcessId]:
    """The processes of YARN containers whose NodeManager owns `folder`.

    Each has CONTAINER_ID in its environment, with paths below `folder` there or as its working directory.
    """
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            environment = b"\0" + (entry / "environ").read_bytes()
            below = f"{folder}/"
            inside = os.fsencode(below) in environment or f"{(entry / 'cwd').readlink()}/".startswith(below)
            process = identify(int(entry.name)) if inside and b"\0CONTAINER_ID=" in environment else None
            if process is not None:
                found.append(process)
    return found


def kill_containers(folder: Path, timeout_s: float = 10.0) -> list[ProcessId]:
    """SIGKILL to the containers below `folder` until none is left; returns what survived."""
    deadline = time.monotonic() + timeout_s
    # Again and again: a process may fork while one looks.
    while (left := containers_below(folder)) and time.monotonic() < deadline:
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        wait_gone(left, 1.0)
    return left
