"""A limit for calls that have none."""

from __future__ import annotations

import threading

import pytest

from tfy.bounded import call_within


def test_the_result_and_what_is_raised_come_through() -> None:
    assert call_within(5, lambda: 7, thread="t") == 7
    with pytest.raises(ZeroDivisionError):
        call_within(5, lambda: 1 // 0, thread="t")


def test_a_call_that_never_returns_is_left() -> None:
    release = threading.Event()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s"):
        call_within(0.05, release.wait, thread="left")
    release.set()


def test_a_calls_own_timeout_is_not_ours() -> None:
    def fail() -> None:
        raise TimeoutError("the socket's")

    with pytest.raises(TimeoutError, match="the socket's"):
        call_within(5, fail, thread="t")
