"""The report file: what a program appends is what its node reads."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tfy.contract import from_json, to_json
from tfy.records import InputProgress, Metric, Progress
from tfy.runtime.report import MOST_METRICS, Counters, ReportReader, append_report


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "report"


def test_no_file_yet_is_no_progress(file: Path) -> None:
    assert ReportReader(file).poll() == Progress()


def test_lines_fold_into_progress(file: Path) -> None:
    reader = ReportReader(file)
    append_report(file, step=10, metrics={"loss": 2.0, "accuracy": 0.5})
    append_report(file, checkpoint="hdfs:///m/ckpt-1")
    assert reader.poll() == Progress(
        steps=10,
        metrics=(Metric(name="loss", value=2.0), Metric(name="accuracy", value=0.5)),
        checkpoint="hdfs:///m/ckpt-1",
    )
    append_report(file, step=20, metrics={"accuracy": 0.75, "rate": 1e-3})
    append_report(file, step=15, checkpoint="hdfs:///m/ckpt-2", metrics={"loss": 1})
    assert reader.poll() == Progress(
        steps=20,
        metrics=(
            Metric(name="loss", value=1.0),
            Metric(name="accuracy", value=0.75),
            Metric(name="rate", value=1e-3),
        ),
        checkpoint="hdfs:///m/ckpt-2",
    )


def test_counters_are_totals(file: Path) -> None:
    append_report(file, counters=Counters(bytes_read=100, reads=1, steps=3))
    append_report(file, counters=Counters(bytes_read=4096, reads=2, steps=7))
    append_report(file, step=5)
    assert ReportReader(file).poll() == Progress(steps=7, bytes_read=4096, reads=2)


def test_processes_are_added_up_and_each_counts_with_its_most(file: Path) -> None:
    for pid, steps in ((1, 3), (2, 10), (1, 7), (2, 9)):
        append_report(file, counters=Counters(pid=pid, bytes_read=100 * steps, reads=steps, steps=steps))
    append_report(file, step=12)
    assert ReportReader(file).poll() == Progress(steps=17, bytes_read=1700, reads=17)
    append_report(file, step=30)
    assert ReportReader(file).poll().steps == 30


def test_input_is_of_the_process_that_read_it(file: Path) -> None:
    append_report(file, counters=Counters(pid=1, steps=5))
    assert ReportReader(file).poll().input is None
    far = InputProgress(records=50, epochs=2, epoch_records=20, epoch_bytes=400, coverage=2**64 - 1, uneven=1)
    append_report(file, counters=Counters(pid=2, input=InputProgress(records=30, epochs=1)))
    append_report(file, counters=Counters(pid=2, input=far))
    append_report(file, counters=Counters(pid=2, input=InputProgress(records=40, epochs=1)))
    progress = ReportReader(file).poll()
    assert progress.input == far
    assert from_json(to_json(progress), Progress) == progress
    append_report(file, counters=Counters(pid=3, input=InputProgress(records=7)))
    expected = InputProgress(**{name: getattr(far, name) for name in far.__slots__} | {"records": 57})
    assert ReportReader(file).poll().input == expected


WRITER = """
import sys
from pathlib import Path
from tfy.runtime.report import Counters, append_report
number, path = int(sys.argv[1]), Path(sys.argv[2])
for step in range(1, 4001):
    append_report(path, step=step, metrics={f"m{number}-{step % 7}": step})
    append_report(path, counters=Counters(pid=number, steps=step))
"""


def test_the_file_stays_small_and_loses_nothing_however_many_write(file: Path) -> None:
    kept, largest = 20_000, 0
    reader = ReportReader(file, kept_bytes=kept)
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(number), str(file)]) for number in range(4)
    ]

    def read() -> bool:
        nonlocal largest
        largest = max(largest, file.stat().st_size if file.exists() else 0)
        reader.poll()
        return all(writer.poll() is not None for writer in writers)

    # As often as it can, so that removing and writing meet.
    while not read():
        pass
    assert [writer.returncode for writer in writers] == [0] * 4
    progress = reader.poll()
    assert progress.steps == 4 * 4000
    last = {
        name: 4000 - (4000 - int(name[-1])) % 7 for name in (f"m{n}-{r}" for n in range(4) for r in range(7))
    }
    assert {metric.name: metric.value for metric in progress.metrics} == last
    reader.poll()
    assert sum(each.stat().st_size for each in file.parent.iterdir()) <= kept
    assert largest < 50 * kept


def test_a_line_that_is_written_while_the_file_is_removed_is_written_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = ReportReader(file, kept_bytes=10)
    append_report(file, step=1)
    write = os.write

    def late(descriptor: int, data: bytes) -> int:
        """The reader comes between opening and writing."""
        monkeypatch.setattr(os, "write", write)
        assert reader.poll().steps in (1, 2)
        return write(descriptor, data)

    for step in (2, 3):
        monkeypatch.setattr(os, "write", late)
        append_report(file, step=step)
        assert reader.poll().steps == step


def test_a_file_that_somebody_removed_is_begun_again(file: Path) -> None:
    reader = ReportReader(file)
    append_report(file, step=1, metrics={"loss": 0.5})
    reader.poll()
    file.unlink()
    assert reader.poll().steps == 1
    append_report(file, step=2)
    assert reader.poll().steps == 2
    append_report(file, step=3, metrics={"loss": 0.25})
    reader.poll()
    file.unlink()
    append_report(file, step=4)
    assert reader.poll().steps == 4


def test_a_file_that_cannot_be_removed_is_read_all_the_same(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_path: Path) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "unlink", refuse)
    reader = ReportReader(file, kept_bytes=30)
    for step in range(10):
        append_report(file, step=step)
        assert reader.poll().steps == step
    assert "grows on: read-only" in caplog.text


def test_a_line_without_its_end_waits(file: Path) -> None:
    append_report(file, step=1, metrics={"loss": 0.5})
    first = file.read_bytes()
    append_report(file, step=2, metrics={"loss": 0.25})
    whole = file.read_bytes()
    reader = ReportReader(file)
    for cut in range(len(whole) + 1):
        file.write_bytes(whole[:cut])
        steps = 2 if cut == len(whole) else 1 if cut >= len(first) else 0
        assert reader.poll().steps == steps


def test_each_line_is_json_of_the_documented_form(file: Path) -> None:
    append_report(file, step=3, checkpoint="c", metrics={"loss": 0.5}, counters=Counters(reads=1))
    assert json.loads(file.read_text()) == {
        "step": 3,
        "checkpoint": "c",
        "metrics": {"loss": 0.5},
        "counters": {"reads": 1},
    }


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.float64(0.5), np.array(0.5)])
def test_numbers_of_every_kind(file: Path, value: float) -> None:
    append_report(file, step=np.int64(4), metrics={"loss": value})
    assert ReportReader(file).poll() == Progress(steps=4, metrics=(Metric(name="loss", value=0.5),))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan")])
def test_a_number_that_is_not_finite_is_kept_in_valid_json(file: Path, value: float) -> None:
    append_report(file, metrics={"loss": 0.5, "accuracy": 0.1})
    append_report(file, metrics={"loss": value})

    def refuse(word: str) -> float:
        raise AssertionError(f"{word} is not JSON")

    assert json.loads(file.read_text().splitlines()[1], parse_constant=refuse) == {
        "metrics": {"loss": str(float(value))}
    }
    progress = ReportReader(file).poll()
    assert progress.metrics == (
        Metric(name="loss", value=str(float(value))),
        Metric(name="accuracy", value=0.1),
    )
    assert from_json(to_json(progress), Progress) == progress


@pytest.mark.parametrize(
    "value", ["0.5", b"1", None, [0.5], {"a": 1}, True, np.array([0.5, 0.6]), object(), 1j]
)
def test_what_is_not_a_number_is_refused_by_name(file: Path, value: float) -> None:
    with pytest.raises(TypeError, match=r"report\(loss=\.\.\.\) takes one number"):
        append_report(file, metrics={"loss": value})
    assert not file.exists()


@pytest.mark.parametrize("value", [-1, 1.5, math.nan, math.inf, "3"])
def test_a_step_is_a_whole_number(file: Path, value: float) -> None:
    with pytest.raises(TypeError, match=r"report\(step=\.\.\.\)"):
        append_report(file, step=value)


@pytest.mark.parametrize(
    "text",
    [
        "loss=0.5",
        "[]",
        '{"step": "x"}',
        '{"metrics": {"loss": "low"}}',
    ],
)
def test_a_foreign_line_is_left_out_with_a_warning(
    file: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text(f'{text}\n{{"step": 7}}\n')
    assert ReportReader(file).poll() == Progress(steps=7)
    assert text[:10] in caplog.text


def test_metrics_of_any_number_and_name_stay_small(file: Path) -> None:
    for number in range(3):
        append_report(file, metrics={f"loss of layer {index}": number for index in range(1000)})
    append_report(file, metrics={"two\nlines" + "x" * 1000: 1.0, "loss of layer 0": 7.0})
    metrics = ReportReader(file).poll().metrics
    assert [metric.name for metric in metrics] == [f"loss of layer {index}" for index in range(MOST_METRICS)]
    assert metrics[0].value == 7.0


def test_a_metrics_name_is_one_short_line(file: Path) -> None:
    append_report(file, metrics={"two\nlines" + "x" * 1000: 1.0})
    (metric,) = ReportReader(file).poll().metrics
    assert metric.name.startswith("two?linesx")
    assert len(metric.name) == 80


def test_drawn_batches_are_no_steps_where_they_are_divided(file: Path) -> None:
    append_report(file, counters=Counters(pid=1, steps=250))
    assert ReportReader(file, counts_steps=False).poll().steps == 0
    append_report(file, step=500)
    assert ReportReader(file, counts_steps=False).poll().steps == 500
