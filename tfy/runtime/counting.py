"""What the plugin counts in a process, told to the report file while the process runs.

It runs inside the user's program, so it is not to be noticed: no error gets out of it, it holds no
lock that a forked child would miss, and its thread is not one that `threading` lists, for a
program may join all of those.
"""

from __future__ import annotations

import _thread
import atexit
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tfy.errors import TfyError
from tfy.records import InputProgress
from tfy.runtime import filesystem
from tfy.runtime.filesystem import InputCounters
from tfy.runtime.report import Counters, append_report

_EVERY_S = 0.5


class Counting:
    """Tells one report file about the process that it is called in."""

    def __init__(self, report: Path, read: Callable[[], filesystem.Counters]) -> None:
        self._report = report
        self._read = read
        self._told = Counters()

    def tell(self) -> None:
        """Appends a line where something has changed since the last one; what fails is tried again."""
        pid = os.getpid()
        with suppress(OSError, TfyError):
            counters = summarize(self._read(), pid)
            if counters not in (self._told, Counters(pid=pid)):
                append_report(self._report, counters=counters)
                self._told = counters

    def start(self) -> None:
        """Tells again and again, in a thread of the process that calls it."""
        with suppress(RuntimeError):  # There can be no more threads: the last word remains.
            _thread.start_new_thread(self._keep_telling, ())

    def _keep_telling(self) -> None:
        while True:
            time.sleep(_EVERY_S)
            self.tell()


def start_counting(report: Path) -> None:
    """Reports this process's counters to `report` every 0.5 s and at its exit, and so its forked children's.

    Who leaves by os._exit has no last word, and may leave out its last 0.5 s: so do the children that
    `multiprocessing` forks. Called once in a process, by the hook, when TensorFlow is imported.

    Raises `StartError` where the plugin is not registered.
    """
    counting = make_counting(report)
    counting.start()
    os.register_at_fork(after_in_child=counting.start)
    atexit.register(counting.tell)


def make_counting(report: Path) -> Counting:
    """One that tells when it is asked to. Raises `StartError` where the plugin is not registered."""
    return Counting(report, filesystem.open_counters())


def summarize(counters: filesystem.Counters, pid: int) -> Counters:
    """The counters of the process `pid` as its report has them."""
    return Counters(
        pid=pid,
        bytes_read=counters.bytes_read,
        reads=counters.reads,
        steps=counters.counts.get("steps", 0),
        input=_summarize_input(counters.input),
    )


def _summarize_input(sets: tuple[InputCounters, ...]) -> InputProgress | None:
    if not sets:
        return None
    first = min(sets, key=lambda each: each.set)
    return InputProgress(
        records=sum(each.records for each in sets),
        epochs=first.epochs,
        epoch_records=first.epoch_records,
        epoch_bytes=first.epoch_bytes,
        coverage=first.coverage,
        uneven=first.uneven,
    )
