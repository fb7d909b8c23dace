"""The driver's word to the client: the job's report, on HDFS, newest first.

Writing to HDFS takes its time and may fail; neither may hold up the driver. A thread writes
the newest report, older ones that were never written are skipped.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from tfy.contract import to_json
from tfy.errors import UnreachableError
from tfy.records import JobReport

_LOG = logging.getLogger(__name__)
_MIN_INTERVAL_S = 1.0
_CLOSE_LIMIT_S = 10.0


class Publisher:
    """Writes reports with `write(data)`, at most one a second."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._newest: JobReport | None = None
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)

    def start(self) -> None:
        """Begins to write."""
        self._thread.start()

    def offer(self, report: JobReport) -> None:
        """Hands over a newer report; returns at once."""
        self._newest = report
        self._wake.set()

    def close(self) -> None:
        """Stops writing, after the write under way."""
        self._closed.set()
        self._wake.set()
        self._thread.join(_CLOSE_LIMIT_S)

    def _run(self) -> None:
        while not self._closed.is_set():
            self._wake.wait()
            self._wake.clear()
            report = self._newest
            if report is None or self._closed.is_set():
                continue
            try:
                self._write(to_json(report))
            except UnreachableError as error:
                _LOG.warning("the job's status could not be written: %s", error)
            self._closed.wait(_MIN_INTERVAL_S)
