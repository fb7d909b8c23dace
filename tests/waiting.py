"""Waiting in tests: for a condition, with a limit, never for a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], *, limit_s: float, what: str) -> float:
    """Returns the seconds that it took; fails, naming `what`, where the limit is reached."""
    began = time.monotonic()
    pause = threading.Event()
    while not condition():
        waited = time.monotonic() - began
        if waited > limit_s:
            raise AssertionError(f"not within {limit_s} s: {what}")
        pause.wait(0.05)
    return time.monotonic() - began
