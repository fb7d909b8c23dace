"""From the bytes of a log to its lines, and to their times. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

_MOST_PENDING = 64 << 10


@dataclass(frozen=True, slots=True)
class RawLine:
    """A line as it is in the log, and the byte after it."""

    text: str
    end: int


class LineSplitter:
    """Cuts what it is fed into lines. What has no end yet is kept for the next piece."""

    def __init__(self, start: int) -> None:
        """`start` is the byte of the log at which the first piece begins."""
        self._end = start
        self._parts: list[bytes] = []
        self._pending_bytes = 0

    def feed(self, data: bytes) -> Iterator[RawLine]:
        """The lines that are complete with `data`."""
        begin = 0
        while (newline := data.find(b"\n", begin)) >= 0:
            self._parts.append(data[begin:newline])
            begin = newline + 1
            yield self._take(1)
        if begin < len(data):
            self._parts.append(data[begin:])
            self._pending_bytes += len(data) - begin
            if self._pending_bytes > _MOST_PENDING:
                self._forget_overwritten()

    @property
    def state(self) -> str:
        """What stands now in a line that has no end yet and is overwritten (a progress bar); or nothing."""
        pending = b"".join(self._parts)
        return reduce_line(pending.decode(errors="replace")) if b"\r" in pending else ""

    def flush(self) -> Iterator[RawLine]:
        """The last line, where it has no end."""
        if self._parts:
            yield self._take(0)

    def _forget_overwritten(self) -> None:
        """A progress bar of hours is one line: of what a terminal would no longer show nothing is kept."""
        whole = b"".join(self._parts)
        last = whole.rfind(b"\r", 0, len(whole.rstrip(b"\r\b ")))
        self._parts = [whole[max(last, 0) :]]
        self._end += len(whole) - len(self._parts[0])
        # A long line that nothing overwrites is kept, and looked at again when it has doubled.
        self._pending_bytes = 0 if last > 0 else -len(whole)

    def _take(self, newline: int) -> RawLine:
        whole = b"".join(self._parts)
        self._parts, self._pending_bytes = [], 0
        self._end += len(whole) + newline
        return RawLine(reduce_line(whole.decode(errors="replace")), self._end)


def reduce_line(text: str) -> str:
    """A line as a terminal would leave it: of what carriage returns overwrite, the last (a progress bar)."""
    if "\r" not in text and "\b" not in text:
        return text
    states = [state.strip("\b") for state in text.split("\r")]
    return next((state for state in reversed(states) if state.strip()), "")


# As log4j writes in Spark's processes, and Python's logging in tfy's own.
_STAMPS = (
    (re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d"), "%y/%m/%d %H:%M:%S"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"), "%Y-%m-%d %H:%M:%S,%f"),
)


def read_stamp(text: str) -> float | None:
    """The time that a line of Spark's or of a node's begins with, taken for this machine's zone."""
    for pattern, form in _STAMPS:
        found = pattern.match(text)
        if found is not None:
            try:
                return datetime.strptime(found.group(), form).timestamp()
            except ValueError:
                return None
    return None


class Clock:
    """When a log had which size, as its node noted (tfy.runtime.log_clock)."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._times: list[float] = []

    def learn(self, data: bytes) -> None:
        """Takes in the file, or its end: a first line that is cut is passed over, and what is known too."""
        for line in data.split(b"\n")[:-1]:
            moment, _, size = line.partition(b" ")
            try:
                time, end = float(moment), int(size)
            except ValueError:
                continue
            # A cut line may read as a number all the same: it is older than what is known, or than the next.
            if not self._sizes or (end > self._sizes[-1] and time >= self._times[-1]):
                self._sizes.append(end)
                self._times.append(time)

    def time_of(self, end: int) -> float | None:
        """When the line was written that ends before byte `end`; None where nobody has noted it."""
        index = bisect_left(self._sizes, end)
        return self._times[index] if index < len(self._sizes) else None

    @property
    def last(self) -> float | None:
        """The last moment that was noted."""
        return self._times[-1] if self._times else None
