"""The report file: what one task's program has done, written by it, read by its node.

One JSON object a line, appended in a single write, so that the program, its children and the
built-in server may share the file. Every key may be missing:

    {"step": 200, "checkpoint": "hdfs:///m/ckpt-2", "metrics": {"loss": 0.25},
     "counters": {"bytes_read": 4096, "reads": 1, "steps": 200}}

JSON has no word for a number that is not finite. A loss that became NaN is news that must not
be lost, so such a value is written as the text "nan", "inf" or "-inf".
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, SupportsFloat

import msgspec

from tfy.contract import Metric, Progress

_NotFinite = Literal["nan", "inf", "-inf"]

_LOG = logging.getLogger(__name__)


class Counters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Totals of one process since it started: bytes and reads of hdfs://, batches drawn."""

    bytes_read: int = 0
    reads: int = 0
    steps: int = 0


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    step: int | None = None
    checkpoint: str | None = None
    metrics: dict[str, float | _NotFinite] | None = None
    counters: Counters | None = None


def append_report(
    path: Path,
    *,
    step: SupportsFloat | None = None,
    checkpoint: str | None = None,
    metrics: Mapping[str, SupportsFloat] | None = None,
    counters: Counters | None = None,
) -> None:
    """Append one line to the report file at `path`.

    `step` is a whole number from 0 on; a metric is one number: Python's, a NumPy scalar, an
    eager tensor without dimensions, NaN and infinities too. Raises TypeError, which names the
    argument, for anything else, and OSError where the file cannot be written.
    """
    line = _Line(
        step=None if step is None else _whole_number("step", step),
        checkpoint=None if checkpoint is None else _path("checkpoint", checkpoint),
        metrics={name: _encoded(_number(name, value)) for name, value in metrics.items()}
        if metrics
        else None,
        counters=counters,
    )
    data = msgspec.json.encode(line) + b"\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # One write: lines of two processes never mix.
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def _number(name: str, value: object) -> float:
    if isinstance(value, SupportsFloat) and not isinstance(value, bool):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass  # An array or a tensor of a graph has __float__ and refuses.
    raise TypeError(
        f"report({name}=...) takes one number: int, float, NumPy scalar or eager tensor without "
        f"dimensions; got {type(value).__name__}: {value!r:.80}"
    )


def _path(name: str, value: object) -> str:
    if isinstance(value, (str, os.PathLike)) and os.fspath(value):
        return str(os.fspath(value))
    raise TypeError(f"report({name}=...) takes a path as text, got {type(value).__name__}: {value!r:.80}")


def _whole_number(name: str, value: object) -> int:
    number = _number(name, value)
    if number < 0 or not number.is_integer():
        raise TypeError(f"report({name}=...) takes a whole number from 0 on, got {number!r}")
    return int(number)


def _encoded(number: float) -> float | _NotFinite:
    if math.isfinite(number):
        return number
    if math.isnan(number):
        return "nan"
    return "inf" if number > 0 else "-inf"


class ReportReader:
    """Folds a report file that is still being written into one `Progress`.

    Each `poll` reads on from where the last one stopped; a line without its end waits for it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._progress = Progress()

    def poll(self) -> Progress:
        """What all complete lines so far say together.

        Steps and counters are the largest seen, checkpoint and each metric the newest, metrics
        in the order in which they first appeared. A file that does not exist yet has no lines.

        A line that `append_report` would not have written is left out, with a warning.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            data = b""
        complete, _, _ = data.rpartition(b"\n")
        for line in complete.splitlines():
            parsed = self._parse(line)
            if parsed is not None:
                self._progress = _fold(self._progress, parsed)
        self._offset += len(complete) + 1 if complete else 0
        return self._progress

    def _parse(self, line: bytes) -> _Line | None:
        try:
            return msgspec.json.decode(line, type=_Line)
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            # A full disk leaves half a line. What a training has done must not hang on its report.
            _LOG.warning("%s: not a line of a report: %r: %s", self._path, line[:200], error)
            return None


def _fold(progress: Progress, line: _Line) -> Progress:
    counters = line.counters or Counters()
    metrics = {metric.name: metric for metric in progress.metrics}
    for name, value in (line.metrics or {}).items():
        metrics[name] = Metric(name=name, value=value)
    return Progress(
        steps=max(progress.steps, line.step or 0, counters.steps),
        bytes_read=max(progress.bytes_read, counters.bytes_read),
        reads=max(progress.reads, counters.reads),
        metrics=tuple(metrics.values()),
        checkpoint=line.checkpoint or progress.checkpoint,
    )
