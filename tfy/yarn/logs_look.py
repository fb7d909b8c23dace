"""Looking at many containers at a time: one whose host is silent holds no other up."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial

from tfy.bounded import begin
from tfy.errors import UnreachableError
from tfy.yarn.logs_model import Listing, LogSource, Place

LOOKERS = 16


class Lookout:
    """Looks at containers side by side, at most `LOOKERS` at a time.

    Each look has a thread of its own, which ends with the process: nothing waits for it after Ctrl-C.
    """

    def __init__(self, source: LogSource) -> None:
        self._source = source
        self._pending: dict[str, Future[Listing | UnreachableError]] = {}

    def look(self, places: Sequence[Place], *, patience_s: float) -> dict[str, Listing | UnreachableError]:
        """By container id, what is there, or why it is not known.

        What has not answered within `patience_s` seconds is not asked again but heard at a later look.
        """
        deadline = time.monotonic() + patience_s
        todo = deque(place for place in places if place.container_id not in self._pending)
        answers: dict[str, Listing | UnreachableError] = {
            place.container_id: UnreachableError(f"the NodeManager {place.node_web} has not answered yet")
            for place in places
        }
        while True:
            while todo and len(self._pending) < LOOKERS:
                place = todo.popleft()
                look = partial(try_look, self._source, place)
                self._pending[place.container_id] = begin(look, thread="look")
            left_s = deadline - time.monotonic()
            if not self._pending or left_s <= 0:
                return answers
            wait(self._pending.values(), timeout=left_s, return_when=FIRST_COMPLETED)
            for container_id, future in list(self._pending.items()):
                if future.done():
                    answers[container_id] = self._pending.pop(container_id).result()


def try_look(source: LogSource, place: Place) -> Listing | UnreachableError:
    """What the source has of a container, or why that is not known."""
    try:
        return source.look(place)
    except UnreachableError as error:
        return error
