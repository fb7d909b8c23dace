"""When a program's log had which size: a small file beside the log, by which lines get their time.

A program's lines carry no time, and those of several tasks can only be merged with one. So the node notes
at each poll, when the log has grown, `<seconds since the epoch> <bytes>`: what lies before that byte
and after the one of the entry before was written by then, at most one poll earlier.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

_LOG = logging.getLogger(__name__)

# With both, the file stays below 100 KiB: the newest entries are exact, of the older ones every other goes.
MOST_ENTRIES = 3072
_KEPT_EXACT = 1024
_SETTLED_ENTRIES = 2048


@dataclass(frozen=True, slots=True)
class Entry:
    """The log had `size` bytes at `time` (seconds since the epoch)."""

    time: float
    size: int


class LogClock:
    """Notes the growth of one log file. Trouble with its file ends the notes, never the task."""

    def __init__(self, log: Path, times: Path) -> None:
        self.log = log
        self._times = times
        self._entries: list[Entry] = []
        self._broken = False

    def tick(self, now: float) -> None:
        """Notes the log's size where it has grown since the last tick; `now` in seconds since the epoch."""
        if self._broken:
            return
        try:
            self._note(now)
        except OSError as error:
            self._broken = True
            _LOG.warning("%s: the times of its lines are no longer noted: %s", self.log.name, error)

    def _note(self, now: float) -> None:
        size = self.log.stat().st_size
        if size <= (self._entries[-1].size if self._entries else 0):
            return
        # A clock that was set back must not turn lines around.
        time = max(now, self._entries[-1].time) if self._entries else now
        self._entries.append(Entry(time, size))
        if len(self._entries) > MOST_ENTRIES:
            self._entries = thin(self._entries)
            # Written, then renamed: a reader sees the old file or the new one.
            beside = self._times.with_suffix(".times_new")
            beside.write_text("".join(map(_format, self._entries)))
            beside.replace(self._times)
        else:
            with self._times.open("a") as sink:
                sink.write(_format(self._entries[-1]))


def thin(entries: list[Entry]) -> list[Entry]:
    """At most 2048 entries: of the older ones those go that lie nearest to their next one in time.

    The lines of an entry that goes get the time of the next: nearest means least wrong.
    """
    recent, old = entries[-_KEPT_EXACT:], entries[:-_KEPT_EXACT]
    step_s = 0.5
    while len(old) > _SETTLED_ENTRIES - _KEPT_EXACT:
        step_s *= 2
        old = _keep_apart(old, recent[0].time, step_s)
    return old + recent


def _keep_apart(entries: list[Entry], after: float, step_s: float) -> list[Entry]:
    """Those that lie at least `step_s` seconds before the next one that is kept."""
    kept = []
    for entry in reversed(entries):
        if after - entry.time >= step_s:
            kept.append(entry)
            after = entry.time
    return kept[::-1]


def _format(entry: Entry) -> str:
    return f"{entry.time:.2f} {entry.size}\n"
