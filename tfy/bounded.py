"""A limit for calls that have none of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TypeVar

T = TypeVar("T")


def begin(call: Callable[[], T], *, thread: str) -> Future[T]:
    """Begins `call` in a thread named `thread`, which ends with the process; what it gives or raises."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - handed over whole to the thread that waits
            future.set_exception(error)

    threading.Thread(target=run, name=thread, daemon=True).start()
    return future


def call_within(limit_s: float, call: Callable[[], T], *, thread: str) -> T:
    """The result of `call`, which alone might never return and be deaf to Ctrl-C.

    Raises what `call` raises, and `TimeoutError` once `limit_s` seconds are over. A call that never
    returns keeps its thread, named `thread`, which ends with the process.
    """
    future = begin(call, thread=thread)
    try:
        return future.result(limit_s)
    except FutureTimeoutError as error:
        if future.done():
            # The call's own.
            raise
        raise TimeoutError(f"no answer within {limit_s:g} s") from error
