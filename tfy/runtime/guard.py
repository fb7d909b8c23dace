"""The guard: what is left of a container's processes when its node is killed.

On a kill the NodeManager sends SIGTERM and, 250 ms later, SIGKILL to the container's process
group. Nothing can be cleaned up there, and a process that left the group by setsid survives.
The guard is a child of the node in a session of its own. It holds one end of a pipe; when the
other end closes without a word, the node was killed, and the guard kills what carries the
container's id in its environment, then ends.

It is forked before the node has threads or connections, and costs no memory of its own.
"""

from __future__ import annotations

import os
import select
import signal
import time
from dataclasses import dataclass

from tfy.runtime import proctree

_DISMISSED = b"."
_SWEEP_EVERY_S = 0.2
# The rest of the container (Spark's executor, the launch shell) ends with the application,
# which its driver and YARN see to. This bounds how long the guard waits for that.
_SWEEP_LIMIT_S = 300.0
# YARN starts no further process in a container whose first one has gone.
_QUIET_SWEEPS = 3


@dataclass(frozen=True, slots=True)
class Guard:
    """The node's end of the pipe."""

    pid: int
    _pipe: int

    def dismiss(self) -> None:
        """The node ends in good order, its descendants are gone: nothing to guard."""
        os.write(self._pipe, _DISMISSED)
        os.close(self._pipe)
        os.waitpid(self.pid, 0)


def start_guard(container_id: str) -> Guard:
    """Starts the guard of this process. Call it before any thread is started."""
    members = proctree.list_of_container(container_id)
    ancestors = tuple(pid for pid in proctree.list_ancestors(os.getpid()) if pid in members)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        _guard(container_id, reading, ancestors)
        os._exit(0)
    os.close(reading)
    return Guard(pid, writing)


def _guard(container_id: str, pipe: int, ancestors: tuple[int, ...]) -> None:
    os.setsid()
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    quiet = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(quiet, descriptor)
    select.select([pipe], [], [])
    if os.read(pipe, 1) != _DISMISSED:
        _sweep(container_id, ancestors)


def _sweep(container_id: str, ancestors: tuple[int, ...]) -> None:
    """Kills the container's processes until none is left.

    The processes above the node are left to YARN as long as they live: a Spark executor must
    still tell its driver that the task has failed.
    """
    limit = time.monotonic() + _SWEEP_LIMIT_S
    quiet = 0
    while quiet < _QUIET_SWEEPS and time.monotonic() < limit:
        hosts_live = any(proctree.is_running(pid) for pid in ancestors)
        found = [
            pid
            for pid in proctree.list_of_container(container_id)
            if proctree.is_running(pid) and not (hosts_live and pid in ancestors)
        ]
        for pid in found:
            proctree.send(pid, signal.SIGKILL)
        quiet = 0 if found or hosts_live else quiet + 1
        time.sleep(_SWEEP_EVERY_S)
