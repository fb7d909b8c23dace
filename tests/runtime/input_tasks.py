"""The tasks of a job, one after another in one process, and what the plugin counted of each."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from tfy.records import InputProgress
from tfy.runtime import filesystem
from tfy.runtime.input import make_dataset, next_set_number
from tfy.shares import InputShares


def progress_of(number: int) -> InputProgress:
    """What this process has read of a set, as it is reported."""
    for counters in filesystem.read_counters().input:
        if counters.set == number:
            return InputProgress(
                records=counters.records,
                epochs=counters.epochs,
                epoch_records=counters.epoch_records,
                epoch_bytes=counters.epoch_bytes,
                coverage=counters.coverage,
                uneven=counters.uneven,
            )
    return InputProgress()


class Tasks:
    """Every task of a job, one after another in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def dataset(
        self, index: int, shares: InputShares, pipeline: Any = lambda records: records, **how: int
    ) -> Any:
        """The dataset of task `index`, and the number of its set."""
        self.monkeypatch.setenv("TFY_TASK_INDEX", str(index))
        number = next_set_number()
        return make_dataset(shares, pipeline, set_number=number, **how), number

    def draw(self, index: int, shares: InputShares, most: int, **how: int) -> list[bytes]:
        """The first records that task `index` reads."""
        dataset, _ = self.dataset(index, shares, **how)
        return list(islice(dataset.as_numpy_iterator(), most))

    def read_epoch(self, shares: InputShares) -> list[InputProgress]:
        """What the plugin counted when each task had read its share to the end, and not much more."""
        return [self.read(index, shares)[0] for index in range(len(shares.shares))]

    def read(self, index: int, shares: InputShares, epochs: int = 1) -> tuple[InputProgress, list[bytes]]:
        """What was counted at the end of the first epoch of task `index`, and the records of `epochs`."""
        dataset, number = self.dataset(index, shares)
        records = dataset.as_numpy_iterator()
        drawn = []
        while not progress_of(number).epochs:
            drawn.append(next(records))
        progress = progress_of(number)
        # The reader is ahead of what is drawn.
        drawn += islice(records, epochs * progress.epoch_records - len(drawn))
        return progress, drawn
