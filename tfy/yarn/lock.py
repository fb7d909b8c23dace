"""A lock between processes, with a limit and the name of who holds it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tfy.errors import UnreachableError

POLL_S = 0.1


@contextmanager
def file_lock(path: Path, *, timeout_s: float, what: str) -> Iterator[None]:
    """Hold `path` (made where missing) against other processes; `what` names the work in the error.

    The kernel drops the lock with its holder, however that one ends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout_s
    with path.open("a+") as file:
        while not _try_lock(file.fileno()):
            if time.monotonic() > deadline:
                file.seek(0)
                holder = file.read().strip() or "unknown"
                raise UnreachableError(
                    f"{what} waited {timeout_s:.0f} s for process {holder}, which holds {path}",
                    hint=f"wait until process {holder} has ended, or end it",
                )
            time.sleep(POLL_S)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
