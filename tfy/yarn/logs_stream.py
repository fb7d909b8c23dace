"""One log on its way from bytes to lines: each line once, in order, with its time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from tfy.paths import log_times
from tfy.yarn.logs_fold import Folder
from tfy.yarn.logs_lines import Clock, LineSplitter, RawLine, read_stamp
from tfy.yarn.logs_model import Listing, LogLine, LogSource, Place, task_of_program_log

_TAIL_BYTES = 64 << 10
# The newest entries of a clock: more than a minute's.
_CLOCK_BYTES = 4 << 10


class Stream:
    """One file of one container, from wherever it can be read at the time."""

    def __init__(self, place: Place, name: str, *, fold: bool) -> None:
        self.place = place
        self.name = name
        self.position = 0
        """The next byte to read."""
        self._fold = fold
        self._task = task_of_program_log(name) or place.task
        self._clock = Clock()
        self._clock_size = 0
        self._last_time: float | None = None
        self._splitter = LineSplitter(0)
        self._folder = Folder() if fold else None
        self._cut = False

    def learn_times(self, source: LogSource, listing: Listing) -> None:
        """Reads what is new of the log's clock, where it has one."""
        name = log_times(self.name)
        size = listing.sizes.get(name, 0)
        if size == self._clock_size:
            return
        start = max(size - _CLOCK_BYTES, 0) if self._clock_size else 0
        begin, parts = start, []
        while data := source.read(self.place, name, begin, size):
            parts.append(data)
            begin += len(data)
        whole = b"".join(parts)
        self._clock.learn(whole.partition(b"\n")[2] if start else whole)
        self._clock_size = size

    def read_to(self, source: LogSource, size: int, now: float | None) -> Iterator[LogLine]:
        """The lines that are complete within the log's first `size` bytes.

        `now` is the time of what the clock does not know yet, because it was written just now; None
        where the log has long ended.
        """
        while self.position < size:
            data = source.read(self.place, self.name, self.position, size)
            if not data:
                return
            self.position += len(data)
            for raw in self._splitter.feed(data):
                if self._cut:
                    self._cut = False
                else:
                    yield from self._pass(raw, now)

    def flush(self, now: float | None) -> Iterator[LogLine]:
        """What is left once nothing more will come: a last line without its end, and what was folded."""
        for raw in self._splitter.flush():
            yield from self._pass(raw, now)
        if self._folder is not None:
            yield from self._folder.flush()

    @property
    def state(self) -> str:
        """The progress bar that its program is drawing, if it is, with the task's name."""
        drawn = self._splitter.state
        return f"{self._task} {drawn}" if drawn else ""

    def read_tail(
        self, source: LogSource, listing: Listing, count: int, now: float | None, *, ends: bool
    ) -> Iterator[LogLine]:
        """The last `count` lines of the log; only the end of a large one is read.

        `ends`: nothing more will be read, so that a last line without its end is one of them.
        """
        size = listing.sizes[self.name]
        window = max(_TAIL_BYTES, count * 256)
        while True:
            start = max(size - window, 0)
            self._begin(start)
            found = deque(self.read_to(source, size, now), maxlen=count)
            if ends:
                found.extend(self.flush(now))
            if start == 0 or len(found) == count:
                return iter(found)
            window *= 8

    def _begin(self, start: int) -> None:
        self.position = start
        # A log that is read from its middle begins there with half a line.
        self._cut = start > 0
        self._last_time = None
        self._splitter = LineSplitter(start)
        self._folder = Folder() if self._fold else None

    def _pass(self, raw: RawLine, now: float | None) -> Iterator[LogLine]:
        time = self._time_of(raw, now)
        if time is not None and self._last_time is not None:
            # A clock that was set back does not turn lines around.
            time = max(time, self._last_time)
        self._last_time = time
        line = LogLine(time, self._task, self.name, raw.text)
        if self._folder is None:
            yield line
        else:
            yield from self._folder.push(line)

    def _time_of(self, raw: RawLine, now: float | None) -> float | None:
        noted = self._clock.time_of(raw.end)
        if noted is not None:
            return noted
        if self._clock.last is not None:
            # Written since the last note, or after it where the node ended before it could note.
            return now if now is not None else self._clock.last
        stamp = read_stamp(raw.text) if task_of_program_log(self.name) is None else now
        return stamp if stamp is not None else self._last_time
