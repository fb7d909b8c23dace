"""The report file: what one task's program has done, written by it, read by its node.

One JSON object a line, appended in a single write, so that the program, its children and the
built-in server may share the file. Every key may be missing:

    {"step": 200, "checkpoint": "hdfs:///m/ckpt-2", "metrics": {"loss": 0.25},
     "counters": {"pid": 17, "bytes_read": 4096, "reads": 1, "steps": 200,
                  "input": {"records": 640, "epochs": 2, ...}}}

The file does not grow without an end: its reader removes it when it has read a MiB of it, and
whoever writes next begins a new one.

JSON has no word for a number that is not finite. A loss that became NaN is news that must not
be lost, so such a value is written as the text "nan", "inf" or "-inf".
"""

from __future__ import annotations

import logging
import math
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Literal, SupportsFloat

import msgspec

from tfy.records import InputProgress, Metric, Progress

_NotFinite = Literal["nan", "inf", "-inf"]

_LOG = logging.getLogger(__name__)
# All tasks' records travel in one answer of the rendezvous, at every look of the driver.
MOST_METRICS = 50
_LONGEST_NAME = 80
_UNSEEN = re.compile(r"[\x00-\x1f\x7f]")

_KEPT_BYTES = 1 << 20
_TRIES = 3


class Counters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Totals of the process `pid` since it started: bytes and reads of hdfs://, batches drawn, input.

    Of the input, `records` are those of all sets, the rest is of the set with the lowest number.
    """

    pid: int = 0
    bytes_read: int = 0
    reads: int = 0
    steps: int = 0
    input: InputProgress | None = None


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
    for _ in range(_TRIES):
        if _append(path, data):
            return


def _append(path: Path, data: bytes) -> bool:
    """Whether the reader finds it: perhaps not where it removed the file after we opened it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # One write: lines of two processes never mix.
        os.write(descriptor, data)
        return os.fstat(descriptor).st_nlink > 0
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
    """Folds a report file that is still being written into one `Progress`; its only reader.

    Each `poll` reads on from where the last one stopped; a line without its end waits for it.
    A file of more than `kept_bytes` is removed once it has been read. `counts_steps` says whether a batch
    that is drawn is a step: not where TensorFlow divides each among the workers.
    """

    def __init__(self, path: Path, *, counts_steps: bool = True, kept_bytes: int = _KEPT_BYTES) -> None:
        self._path = path
        self._counts_steps = counts_steps
        self._kept_bytes = kept_bytes
        self._file_id: tuple[int, int] | None = None
        self._offset = 0
        self._said = Progress()
        self._processes: dict[int, Counters] = {}

    def poll(self) -> Progress:
        """What all complete lines so far say together.

        Checkpoint and each metric are the newest, metrics in the order in which they first
        appeared, 50 at most. Counters are the sum over processes of the largest that each has told; steps are
        the largest reported, or what was counted. A file that does not exist yet has no lines.

        A line that `append_report` would not have written is left out, with a warning.
        """
        try:
            with self._path.open("rb") as file:
                data = self._read_on(file)
        except FileNotFoundError:
            self._file_id, data = None, b""
        for text in data.splitlines():
            line = self._parse(text)
            if line is not None:
                self._fold(line)
        counters = self._processes.values()
        return replace(
            self._said,
            steps=max(self._said.steps, sum(each.steps for each in counters) if self._counts_steps else 0),
            bytes_read=sum(each.bytes_read for each in counters),
            reads=sum(each.reads for each in counters),
            input=_sum_inputs([each.input for each in counters if each.input is not None]),
        )

    def _read_on(self, file: BinaryIO) -> bytes:
        """The complete lines that were not read before."""
        status = os.fstat(file.fileno())
        # Somebody else may have removed it, and a new file may have the old one's number.
        if self._file_id != (status.st_dev, status.st_ino) or status.st_size < self._offset:
            self._file_id, self._offset = (status.st_dev, status.st_ino), 0
        file.seek(self._offset)
        data = file.read()
        if self._offset + len(data) > self._kept_bytes and self._remove():
            # Who writes to it after this sees that it is gone, and writes again.
            data += file.read()
        complete = data[: data.rfind(b"\n") + 1]
        self._offset += len(complete)
        return complete

    def _remove(self) -> bool:
        try:
            self._path.unlink()
        except OSError as error:
            _LOG.warning("%s grows on: %s", self._path, error)
            self._kept_bytes *= 2
            return False
        self._file_id = None
        return True

    def _parse(self, line: bytes) -> _Line | None:
        try:
            return msgspec.json.decode(line, type=_Line)
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            # A full disk leaves half a line. What a training has done must not hang on its report.
            _LOG.warning("%s: not a line of a report: %r: %s", self._path, line[:200], error)
            return None

    def _fold(self, line: _Line) -> None:
        self._said = _fold_said(self._said, line)
        if line.counters is not None:
            known = self._processes.get(line.counters.pid, Counters())
            self._processes[line.counters.pid] = _larger(known, line.counters)


def _fold_said(progress: Progress, line: _Line) -> Progress:
    metrics = {metric.name: metric for metric in progress.metrics}
    for told, value in (line.metrics or {}).items():
        name = _UNSEEN.sub("?", told)[:_LONGEST_NAME]
        if name in metrics or len(metrics) < MOST_METRICS:
            metrics[name] = Metric(name=name, value=value)
    return replace(
        progress,
        steps=max(progress.steps, line.step or 0),
        metrics=tuple(metrics.values()),
        checkpoint=line.checkpoint or progress.checkpoint,
    )


def _larger(known: Counters, told: Counters) -> Counters:
    """Totals only grow, but two threads' lines may change places."""
    inputs = [each for each in (known.input, told.input) if each is not None]
    return Counters(
        pid=told.pid,
        bytes_read=max(known.bytes_read, told.bytes_read),
        reads=max(known.reads, told.reads),
        steps=max(known.steps, told.steps),
        input=max(inputs, key=_how_far, default=None),
    )


def _sum_inputs(inputs: list[InputProgress]) -> InputProgress | None:
    """All processes' records, and the epochs of the one that has read the most."""
    if not inputs:
        return None
    return replace(max(inputs, key=_how_far), records=sum(each.records for each in inputs))


def _how_far(progress: InputProgress) -> tuple[int, int]:
    return progress.epochs, progress.records
