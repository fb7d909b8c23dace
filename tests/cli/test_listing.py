"""The rows of `tfy ls`, and what is printed of them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.views import BEGAN, make_report, make_view
from tfy.cli import render
from tfy.cli.listing import make_columns, make_row
from tfy.states import ApplicationState, JobState
from tfy.units import format_time

NOW = BEGAN + timedelta(minutes=5)
ENDED = make_row(make_view(ApplicationState.FINISHED, "succeeded"), NOW)
RUNNING = make_row(make_view(report=make_report(JobState.RUNNING)), NOW)


def test_a_job_that_runs_has_a_phase_and_grows() -> None:
    assert (RUNNING.state, RUNNING.phase, RUNNING.duration_s) == (JobState.RUNNING, "training", 300.0)
    assert (ENDED.state, ENDED.phase, ENDED.duration_s) == (JobState.SUCCEEDED, None, 90.0)
    queued = make_row(make_view(ApplicationState.ACCEPTED), BEGAN - timedelta(seconds=5))
    assert queued.phase == "waiting for YARN to start the application in queue default"
    # This machine's clock may be behind the cluster's.
    assert queued.duration_s == 0.0


def test_columns_that_tell_nothing_are_left_out() -> None:
    headings = ["name", "application", "state", "started", "duration", "queue"]
    assert [heading for heading, _ in make_columns([ENDED])] == headings
    assert [heading for heading, _ in make_columns([ENDED, RUNNING])] == [*headings, "phase"]
    other = replace(ENDED, user="ada")
    assert make_columns([ENDED, other])[-1] == ("user", ["me", "ada"])


def test_one_line_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    render.show_jobs([RUNNING, ENDED], as_json=False)
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split() == ["name", "application", "state", "started", "duration", "queue", "phase"]
    assert format_time(BEGAN) in first
    assert first.split()[-4:] == ["5", "min", "default", "training"]
    assert second.split()[-5:] == ["1", "min", "30", "s", "default"]


def test_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    render.show_jobs([RUNNING, ENDED], as_json=True)
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["state"], first["phase"], first["started"]) == (
        "running",
        "training",
        "2026-12-01T12:00:00Z",
    )
    assert (second["application_id"], second["submission_id"]) == ("application_1_1", "u")
    assert second["phase"] is None


def test_no_job_is_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    for as_json in (False, True):
        render.show_jobs([], as_json=as_json)
    assert capsys.readouterr().out == ""
