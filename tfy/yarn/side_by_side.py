"""Many small calls to the cluster, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(
    call: Callable[[T], R], items: Sequence[T], *, threads: int, tell: Callable[[int], None] | None = None
) -> list[R]:
    """The results in the order of `items`; `tell` hears how many are there.

    Raises what the first item that failed raised; what has not begun by then is not begun any more.
    """
    pool = ThreadPoolExecutor(max(1, min(threads, len(items))))
    try:
        results = []
        for result in pool.map(call, items):
            results.append(result)
            if tell is not None:
                tell(len(results))
        return results
    finally:
        pool.shutdown(cancel_futures=True)
