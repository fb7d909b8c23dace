"""The report file: what a program appends is what its node reads."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from tfy.contract import Metric, Progress, from_json, to_json
from tfy.runtime.report import Counters, ReportReader, append_report


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
