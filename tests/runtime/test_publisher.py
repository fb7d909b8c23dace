"""The newest report is written, whatever happens to older ones."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from tests.views import make_report
from tests.waiting import wait_until
from tfy.contract import from_json
from tfy.errors import UnreachableError
from tfy.records import JobReport
from tfy.runtime import publisher
from tfy.runtime.publisher import Publisher
from tfy.states import JobState

REPORT = make_report(JobState.RUNNING)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "_MIN_INTERVAL_S", 0.01)


def test_older_reports_are_skipped_and_the_newest_is_written() -> None:
    written: list[JobReport] = []
    gate = threading.Event()

    def write(data: bytes) -> None:
        gate.wait(10)
        written.append(from_json(data, JobReport))

    publishing = Publisher(write)
    publishing.start()
    for number in range(100):
        publishing.offer(replace(REPORT, phase=str(number)))
    gate.set()
    wait_until(lambda: bool(written) and written[-1].phase == "99", limit_s=10, what="the newest is written")
    assert len(written) <= 3
    publishing.close()


def test_a_failed_write_is_followed_by_the_next(caplog: pytest.LogCaptureFixture) -> None:
    attempts: list[bytes] = []

    def write(data: bytes) -> None:
        attempts.append(data)
        if len(attempts) == 1:
            raise UnreachableError("HDFS does not answer")

    publishing = Publisher(write)
    publishing.start()
    publishing.offer(REPORT)
    wait_until(lambda: len(attempts) == 1, limit_s=10, what="the first write")
    publishing.offer(replace(REPORT, phase="later"))
    wait_until(lambda: len(attempts) == 2, limit_s=10, what="the second write")
    publishing.close()
    assert "HDFS does not answer" in caplog.text


def test_closing_does_not_wait_for_a_write_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "_CLOSE_LIMIT_S", 0.2)
    gate = threading.Event()

    def hang(_data: bytes) -> None:
        gate.wait(30)

    publishing = Publisher(hang)
    publishing.start()
    publishing.offer(REPORT)
    publishing.close()
    gate.set()
